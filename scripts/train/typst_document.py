"""Random typst documents of one page with exact layout truth.

The fill colour of every region's text carries the region's number in the low three bits of each channel; pdfium reads it back per
character. Figures are bracketed by two marks of 1 pt in the region's colour.
"""
from .typst_math import equation
from .typst_text import Prose, number, quote

SERIF = (
    "New Computer Modern", "Libertinus Serif", "Liberation Serif", "EB Garamond", "TeX Gyre Termes", "TeX Gyre Pagella", "TeX Gyre Schola",
    "TeX Gyre Bonum", "Caladea", "Linux Libertine O", "P052", "C059", "Nimbus Roman", "Noto Serif", "DejaVu Serif", "STIX", "CMU Serif",
    "Junicode", "Gentium",
)  # fmt: skip
SANS = (
    "Liberation Sans", "DejaVu Sans", "Lato", "Open Sans", "Roboto", "Carlito", "TeX Gyre Heros", "TeX Gyre Adventor", "Nimbus Sans",
    "Noto Sans", "CMU Sans Serif", "Cantarell", "Liberation Sans Narrow", "URW Gothic",
)  # fmt: skip
MONO = ("Liberation Mono", "DejaVu Sans Mono", "Fira Code", "Inconsolata", "TeX Gyre Cursor", "Nimbus Mono PS", "Noto Sans Mono")
PAPERS = ((595, 842), (612, 792), (595, 842), (420, 595), (500, 700))
INKS = ((0, 0, 0),) * 6 + ((24, 24, 24), (40, 40, 40), (0, 0, 64), (64, 0, 0))
CODE_LINES = (
    "let {a} = {b}({c});", "if {a} > {b}:", "return {a} + {c}", "def {a}({b}, {c}):", "for {a} in {b}: print({c})", "{a}.{b}({c!r})",
    "#include <{a}.h>", "{a}[{c}] = {b};", "// {a} {b}",
)  # fmt: skip
# Families without Greek or Cyrillic letters.
LATIN_ONLY = ("TeX Gyre", "Caladea", "New Computer Modern", "Inconsolata")
# Text that belongs to no region.
NO_REGION = 511


class TypstDocument:
    """`source()` writes the document and fills `regions`: id, kind, and heading level, table rows, LaTeX or code lines, in reading order."""

    def __init__(self, random_):
        self.random_, self.regions = random_, []
        self.prose = Prose(random_)
        self.ink = random_.choice(INKS)
        self.headings, self.tables, self.figures = [0, 0, 0], 0, 0
        self.numbered = random_.random() < 0.5
        self.heading_scale, self.heading_weight = random_.uniform(0.85, 1.2), random_.choice(("bold", "bold", "semibold", "regular"))
        self.spacing, self.mono = random_.uniform(0.7, 1.3), random_.choice(MONO)
        self.width, self.height = random_.choice(PAPERS)
        if random_.random() < 0.12:
            self.width, self.height = self.height, self.width
        self.columns = 1 if self.width < 450 else random_.choice((1, 1, 1, 2, 2, 3))

    def region(self, kind: str, **truth) -> int:
        self.regions.append({"id": len(self.regions) + 1, "kind": kind, **truth})
        return len(self.regions)

    def colour(self, region: int) -> str:
        red, green, blue = (channel & ~7 | region >> shift & 7 for channel, shift in zip(self.ink, (0, 3, 6), strict=True))
        return f"rgb({red},{green},{blue})"

    def text(self, text: str, region: int, options: str = "") -> str:
        """A run of text, sometimes with a few words emphasised."""
        colour = f"fill:{self.colour(region)}{options}"
        if self.random_.random() >= 0.2:
            return f"#text({colour})[#{quote(text)}]"
        words = text.split(" ")
        start = self.random_.randrange(len(words))
        end = min(len(words), start + self.random_.randint(1, 4))
        look = self.random_.choice(('style:"italic"', 'weight:"bold"'))
        before, emphasised, after = (" ".join(part) for part in (words[:start], words[start:end], words[end:]))
        return f"#text({colour})[#{quote(before + ' ')}#text({look})[#{quote(emphasised)}]#{quote(' ' + after)}]"

    def heading(self) -> str:
        random_ = self.random_
        level = random_.choice((1, 2, 2, 3))
        region = self.region("heading", level=level)
        title = self.prose.phrase(random_.randint(1, 6)).title()
        if self.numbered:
            self.headings[level - 1] += 1
            self.headings[level:] = [0] * (3 - level)
            title = ".".join(str(count or 1) for count in self.headings[:level]) + random_.choice((" ", ". ", "  ")) + title
        size = (1.45, 1.2, 1.05)[level - 1] * self.heading_scale
        look = f'size:{size:.2f}em,weight:"{self.heading_weight}",fill:{self.colour(region)}'
        return f"#block(above:{1.3 * self.spacing:.2f}em,below:{0.8 * self.spacing:.2f}em,sticky:true)[#text({look})[#{quote(title)}]]"

    def paragraph(self) -> str:
        region = self.region("text")
        return f"#par[{self.text(self.prose.sentence(), region)}]\n"

    def item_list(self) -> str:
        random_, region = self.random_, self.region("list")
        items = ",".join("[" + self.text(self.prose.sentence(3, 22), region) + "]" for _ in range(random_.randint(2, 6)))
        shape = f"indent:{random_.choice((0, 0.5, 1))}em,tight:{random_.choice(('true', 'false'))}"
        mark = f"text(fill:{self.colour(region)})"
        if random_.random() < 0.4:
            pattern = quote(random_.choice(("1.", "1)", "(a)", "a.", "i.")))
            return f"#enum({shape},numbering:n=>{mark}[#numbering({pattern},n)],{items})"
        return f"#list({shape},marker:{mark}[{random_.choice('•–‣◦▪')}],{items})"

    def table_rows(self) -> tuple[list[list[str]], bool]:
        random_ = self.random_
        columns = random_.randint(2, {1: 6, 2: 4}.get(self.columns, 3))
        worded = [random_.random() < (0.75 if i == 0 else 0.35) for i in range(columns)]
        header = random_.random() < 0.8
        rows = []
        for y in range(random_.randint(2, 10)):
            row = []
            for x in range(columns):
                if y == 0 and header:
                    row.append(self.prose.phrase(random_.randint(1, 2)).title())
                elif random_.random() < 0.05:
                    row.append("")
                else:
                    row.append(self.prose.phrase(random_.randint(1, 3)) if worded[x] else number(random_))
            rows.append(row)
        return rows, header

    def table(self) -> str:
        random_ = self.random_
        rows, header = self.table_rows()
        region = self.region("table", rows=rows, header=header)
        styles = {
            "grid": "stroke:0.5pt", "none": "stroke:none", "booktabs": "stroke:none", "rows": "stroke:(x,y)=>(bottom:0.4pt)",
            "zebra": "stroke:none,fill:(x,y)=>if calc.odd(y){luma(235)}",
        }  # fmt: skip
        style = random_.choice(list(styles))
        align = random_.choice(("left", "center", "(x,y)=>if x==0{left}else{right}"))
        cells = ["table.hline()"] if style == "booktabs" else []
        for y, row in enumerate(rows):
            for cell in row:
                bold = ',weight:"bold"' if y == 0 and header and random_.random() < 0.7 else ""
                cells.append(f"text(fill:{self.colour(region)}{bold})[#{quote(cell)}]")
            if style == "booktabs" and y in (0, len(rows) - 1):
                cells.append("table.hline(stroke:0.5pt)")
        shape = f"columns:{len(rows[0])},align:{align},inset:{random_.uniform(2.5, 6):.1f}pt,{styles[style]}"
        return f"#align(center)[#text(size:{random_.choice((0.85, 0.9, 1.0))}em)[#table({shape},{','.join(cells)})]]"

    def caption(self, label: str) -> str:
        random_, region = self.random_, self.region("caption")
        text = label + random_.choice((": ", ". ", " – ")) + self.prose.sentence(4, 22)
        return f"#align({random_.choice(('center', 'left'))})[#text(size:0.9em,fill:{self.colour(region)})[#{quote(text)}]]"

    def captioned_table(self) -> str:
        if self.random_.random() >= 0.7:
            return self.table()
        self.tables += 1
        above = self.random_.random() < 0.5
        first = self.caption(f"Table {self.tables}") if above else self.table()
        second = self.table() if above else self.caption(f"Table {self.tables}")
        return f"#block(breakable:false)[{first}{second}]"

    def formula(self) -> str:
        typst, latex = equation(self.random_)
        region = self.region("formula", latex=latex)
        numbering = f",numbering:_=>[({self.random_.randint(1, 40)})]" if self.random_.random() < 0.5 else ""
        return f"#[#set text(fill:{self.colour(region)})\n#math.equation(block:true{numbering})[$ {typst} $]]"

    def drawing(self) -> str:
        random_ = self.random_
        width, height = random_.uniform(40, 160), random_.uniform(40, 140)
        colours = [f"rgb({random_.randint(0, 255)},{random_.randint(0, 255)},{random_.randint(0, 255)})" for _ in range(4)]
        size = f"width:{width:.0f}pt,height:{height:.0f}pt"
        bars = ",".join(f"rect(width:10pt,height:{random_.uniform(5, height):.0f}pt,fill:{colours[i % 4]})" for i in range(max(2, int(width / 16))))
        return random_.choice((
            f"rect({size},fill:gradient.linear({colours[0]},{colours[1]}))",
            f"ellipse({size},fill:{colours[0]},stroke:2pt+{colours[1]})",
            f"box(stroke:0.5pt,inset:4pt)[#stack(dir:ltr,spacing:4pt,{bars})]",
        ))  # fmt: skip

    def figure(self) -> str:
        region = self.region("figure")
        mark = f"#text(size:1pt,fill:{self.colour(region)})[§]"
        body = f"#align(center)[#box[#place(top+left)[{mark}]#{self.drawing()}#place(bottom+right)[{mark}]]]"
        caption = ""
        if self.random_.random() < 0.8:
            self.figures += 1
            caption = self.caption(f"{self.random_.choice(('Figure', 'Fig.'))} {self.figures}")
        return f"#block(breakable:false)[{body}{caption}]"

    def code(self) -> str:
        random_ = self.random_
        word = lambda: self.prose.phrase(1).lower().strip(".,")  # noqa: E731
        lines = []
        for _ in range(random_.randint(2, 8)):
            line = random_.choice(CODE_LINES).format(a=word(), b=word(), c=random_.randint(0, 99))
            lines.append("    " * random_.randint(0, 2) + line)
        region = self.region("code", lines=lines)
        # No-break spaces: typst would drop ordinary ones at a line's start.
        body = " #linebreak() #".join(quote(line.replace(" ", "\u00a0")) for line in lines)
        fill = ",fill:luma(240)" if random_.random() < 0.5 else ""
        return f"#block(inset:4pt,width:100%{fill})[#text(font:{quote(self.mono)},size:0.85em,fill:{self.colour(region)})[#{body}]]"

    def element(self) -> str:
        makers = (self.heading, self.paragraph, self.item_list, self.captioned_table, self.formula, self.figure, self.code)
        return self.random_.choices(makers, weights=(16, 46, 10, 9, 7, 5, 4))[0]()

    def running_matter(self) -> str:
        """Header, and page number or footer, as options of the page."""
        random_, options = self.random_, ""
        place = lambda: random_.choice(("left", "center", "right"))  # noqa: E731
        if random_.random() < 0.5:
            region = self.region("header")
            text = quote(self.prose.phrase(random_.randint(2, 7)))
            options += f",header:align({place()},text(size:0.85em,fill:{self.colour(region)})[#{text}])"
        kind = random_.random()
        if kind < 0.75:
            region = self.region("page_number" if kind < 0.6 else "footer")
            form = random_.choice(("{}", "Page {}", "– {} –", "{} / 24", "[{}]"))
            text = quote(form.format(random_.randint(1, 400)) if kind < 0.6 else self.prose.phrase(random_.randint(3, 9)))
            options += f",footer:align({place()},text(size:0.85em,fill:{self.colour(region)})[#{text}])"
        return options

    def title(self) -> str:
        random_ = self.random_
        region = self.region("title")
        look = f'size:{random_.uniform(1.5, 2.3):.2f}em,weight:"bold",fill:{self.colour(region)}'
        text = f"#align({random_.choice(('center', 'center', 'left'))})[#text({look})[#{quote(self.prose.phrase(random_.randint(3, 10)).title())}]]"
        if random_.random() < 0.6:
            region = self.region("text")
            names = ", ".join(self.prose.phrase(2).title() for _ in range(random_.randint(1, 4)))
            text += f"\n#align(center)[#text(fill:{self.colour(region)})[#{quote(names)}]]"
        return text

    def source(self) -> str:
        random_ = self.random_
        margins = f"margin:(x:{random_.uniform(30, 85):.0f}pt,y:{random_.uniform(30, 85):.0f}pt)"
        families = [name for name in (SERIF if random_.random() < 0.6 else SANS) if self.prose.latin or not name.startswith(LATIN_ONLY)]
        font = quote(random_.choice(families))
        parts = [
            f"#set page(width:{self.width}pt,height:{self.height}pt,{margins}{self.running_matter()})",
            f"#set text(font:{font},size:{random_.uniform(8.5, 12):.2f}pt,fill:{self.colour(NO_REGION)},"
            f"hyphenate:{random_.choice(('true', 'false'))})",
            f"#set par(justify:{random_.choice(('true', 'true', 'false'))},leading:{random_.uniform(0.45, 0.95):.2f}em,"
            f"spacing:{random_.uniform(0.8, 1.5):.2f}em,first-line-indent:{random_.choice((0, 0, 1, 1.5))}em)",
        ]
        if random_.random() < 0.35:
            parts.append(self.title())
        body = "\n\n".join(self.element() for _ in range(random_.randint(5, 26)))
        parts.append(f"#columns({self.columns},gutter:{random_.uniform(12, 26):.0f}pt)[{body}]" if self.columns > 1 else body)
        return "\n".join(parts)
