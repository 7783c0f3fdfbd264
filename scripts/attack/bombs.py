"""Small files that ask for much: memory, time, depth, pages. Each function gives the bytes of one file."""

import random
import struct
import zlib

MEDIA = b"/MediaBox [0 0 612 792]"


def pdf(objects, root=1):
    """A PDF of the given objects (bytes; a stream is a pair of dictionary entries and data), numbered from 1."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        if isinstance(body, tuple):
            entries, data = body
            body = b"<< %s /Length %d >>\nstream\n%s\nendstream" % (entries, len(data), data)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(places) + 1)
    for place in places:
        out += b"%010d 00000 n \n" % place
    out += b"trailer << /Size %d /Root %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(places) + 1, root, table)
    return bytes(out)


def one_page(content, resources=b"", media=MEDIA, more=()):
    """One page; `content` is bytes or a stream pair. Objects in `more` are numbered from 6; 5 is Helvetica."""
    stream = content if isinstance(content, tuple) else (b"", content)
    page = b"<< /Type /Page /Parent 2 0 R %s /Contents 4 0 R /Resources << /Font << /F 5 0 R >> %s >> >>"
    return pdf([
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        page % (media, resources),
        stream,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        *more,
    ])


def deflated_zeros(length):
    """`length` zero bytes, deflated without holding them."""
    packer = zlib.compressobj(9)
    block = bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(length >> 20)]
    return b"".join(parts) + packer.flush()


def picture(entries, data):
    draw = b"q 612 0 0 792 0 0 cm /I Do Q"
    image = (b"/Type /XObject /Subtype /Image " + entries, data)
    return one_page(draw, b"/XObject << /I 6 0 R >>", more=[image])


def page_sizes():
    boxes = {
        "thin": b"[0 0 1 1000000]",
        "huge": b"[0 0 2147483647 2147483647]",
        "tiny": b"[0 0 0.0001 0.0001]",
        "turned": b"[612 792 0 0]",
        "words": b"[/a (b) null <</c 1>>]",
        "infinite": b"[-1e38 -1e38 1e38 1e38]",
        "negative": b"[-99999999 -99999999 -99999998 -99999998]",
    }
    for name, box in boxes.items():
        yield f"box-{name}.pdf", one_page(b"BT /F 12 Tf 10 10 Td (words) Tj ET", media=b"/MediaBox " + box)
    yield "user-unit.pdf", one_page(b"", media=MEDIA + b" /UserUnit 1e30")


def page_trees():
    kids = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    deep = 20_000
    kids += [b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (n + 3) for n in range(deep)]
    kids.append(b"<< /Type /Page /Parent %d 0 R %s >>" % (deep + 1, MEDIA))
    yield "tree-deep.pdf", pdf(kids)
    ring = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 9 >>",
            b"<< /Type /Pages /Parent 2 0 R /Kids [2 0 R 3 0 R] /Count 9 >>"]
    yield "tree-ring.pdf", pdf(ring)
    page = b"<< /Type /Page /Parent 2 0 R %s >>" % MEDIA
    for count in (1_000_000, 2_147_483_647, -5):
        catalogue = b"<< /Type /Catalog /Pages 2 0 R >>"
        yield f"count-{count}.pdf", pdf([catalogue, b"<< /Type /Pages /Kids [3 0 R] /Count %d >>" % count, page])
    shared = b"<< /Type /Pages /Count 100000 /Kids [%s] >>" % (b"3 0 R " * 100_000)
    yield "tree-wide.pdf", pdf([b"<< /Type /Catalog /Pages 2 0 R >>", shared, page])


def streams():
    gibibyte = deflated_zeros(1 << 30)
    yield "flate-content.pdf", one_page((b"/Filter /FlateDecode", gibibyte))
    twice = zlib.compress(gibibyte, 9)
    yield "flate-twice.pdf", one_page((b"/Filter [/FlateDecode /FlateDecode]", twice))
    many = b"[%s]" % (b"/FlateDecode " * 1000)
    yield "flate-chain.pdf", one_page((b"/Filter " + many, gibibyte))
    gray = b"/Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode"
    yield "image-large.pdf", picture(gray % (30_000, 30_000), gibibyte)
    yield "image-larger.pdf", picture(gray % (2_000_000_000, 2_000_000_000), gibibyte)
    predictor = b" /DecodeParms << /Predictor 15 /Colors 4 /BitsPerComponent 16 /Columns 2000000000 >>"
    yield "predictor.pdf", picture(gray % (100, 100) + predictor, gibibyte[:4096])
    run = b"/Width 60000 /Height 60000 /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /RunLengthDecode"
    yield "run-length.pdf", picture(run, b"\x81\x00" * 200_000 + b"\x80")
    fax = b"/Width 65000 /Height 2000000 /BitsPerComponent 1 /ColorSpace /DeviceGray /Filter /CCITTFaxDecode"
    yield "fax.pdf", picture(fax + b" /DecodeParms << /K -1 /Columns 65000 /Rows 2000000 >>", bytes(1000))
    yield "lzw.pdf", picture(gray.replace(b"Flate", b"LZW") % (9000, 9000), bytes(range(256)) * 100)


def jbig2_segment(number, kind, data, page=1):
    return struct.pack(">IBBBI", number, kind, 0, page, len(data)) + data


def jbig2():
    entries = b"/Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 1 /Filter /JBIG2Decode"
    for name, width, height in (("huge", 0xFFFFFFF0, 0xFFFFFFF0), ("large", 60_000, 60_000), ("tall", 8, 0x7FFFFFFF)):
        page = struct.pack(">IIIIBH", width, height, 0, 0, 0, 0)
        region = struct.pack(">IIIIB", width, height, 0, 0, 0) + b"\x00" + bytes([3, 255, 253, 255, 2, 254, 254, 254])
        data = jbig2_segment(0, 48, page) + jbig2_segment(1, 38, region + bytes(64))
        yield f"jbig2-{name}.pdf", picture(entries % (min(width, 60_000), min(height, 60_000)), data)
    symbols = struct.pack(">H", 0) + bytes([3, 255, 253, 255, 2, 254, 254, 254]) + struct.pack(">II", 0x7FFFFFFF, 0x7FFFFFFF)
    data = jbig2_segment(0, 48, struct.pack(">IIIIBH", 100, 100, 0, 0, 0, 0)) + jbig2_segment(1, 0, symbols + bytes(64))
    yield "jbig2-symbols.pdf", picture(entries % (100, 100), data)


def jpx():
    entries = b"/Width 100 /Height 100 /Filter /JPXDecode"
    sizes = {"huge": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 3), "tiles": (60_000, 60_000, 1, 3), "planes": (2000, 2000, 2000, 16384)}
    for name, (width, height, tile, planes) in sizes.items():
        size = struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, tile, tile, 0, 0, planes) + b"\x07\x01\x01" * planes
        style = bytes([0, 0, 0, 1, 0, 5, 4, 4, 0, 0])
        steps = bytes([0x40]) + bytes([0x40] * 16)
        out = b"\xff\x4f"
        for marker, body in ((0x51, size), (0x52, style), (0x5C, steps)):
            out += struct.pack(">BBH", 0xFF, marker, (len(body) + 2) & 0xFFFF) + body
        out += b"\xff\x90" + struct.pack(">HHIBB", 10, 0, 0, 0, 1) + b"\xff\x93" + bytes(200) + b"\xff\xd9"
        yield f"jpx-{name}.pdf", picture(entries, out)


def drawings():
    form = (b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /I 6 0 R >> >>", b"/I Do " * 50)
    yield "form-ring.pdf", one_page(b"/I Do", b"/XObject << /I 6 0 R >>", more=[form])
    levels = 12
    nest = [(b"/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /XObject << /I %d 0 R >> >>" % (n + 7),
             b"/I Do " * 20) for n in range(levels)]
    nest.append((b"/Type /XObject /Subtype /Form /BBox [0 0 612 792]", b"0 0 10 10 re f"))
    yield "form-powers.pdf", one_page(b"/I Do", b"/XObject << /I 6 0 R >>", more=nest)
    tile = (b"/Type /Pattern /PatternType 1 /PaintType 1 /TilingType 1 /BBox [0 0 1 1] /XStep 0.0001 /YStep 0.0001 "
            b"/Resources << >>", b"0 0 1 1 re f")
    yield "pattern.pdf", one_page(b"/Pattern cs /P scn 0 0 612 792 re f", b"/Pattern << /P 6 0 R >>", more=[tile])
    lines = b"".join(b"%d %d m %d %d l S\n" % (n % 612, n % 791, n * 7 % 612, n * 13 % 792) for n in range(200_000))
    yield "lines.pdf", one_page(lines)
    boxes = b"".join(b"%d %d 3 0.4 re f\n" % (n * 5 % 600, n // 120 * 2 % 790) for n in range(100_000))
    yield "boxes.pdf", one_page(boxes)
    yield "dashes.pdf", one_page(b"[0.00001] 0 d 0 0 m 612 792 l S")
    yield "stack.pdf", one_page(b"q " * 500_000)
    yield "arrays.pdf", one_page(b"[" * 300_000)
    yield "catalogue.pdf", b"%PDF-1.7\n1 0 obj\n" + b"<</A" * 200_000 + b"\nendobj\ntrailer <</Root 1 0 R>>\n"


def texts():
    letters = b"".join(b"BT /F 2 Tf %d %d Td (%s) Tj ET\n" % (n % 6 * 100, n // 6 % 790, b"ab cd ef " * 12) for n in range(5000))
    yield "letters.pdf", one_page(letters)
    piled = b"BT /F 9 Tf 50 50 Td %s ET" % (b"(overprinted words) Tj 0 0 Td " * 20_000)
    yield "piled.pdf", one_page(piled)
    yield "one-word.pdf", one_page(b"BT /F 1 Tf 5 50 Td (%s) Tj ET" % (b"x" * 300_000))
    links = b"".join(b"<< /Type /Annot /Subtype /Link /Rect [%d 0 %d 9] /A << /S /URI /URI (http://x/%d) >> >> " % (n % 600, n % 600 + 5, n)
                     for n in range(50_000))
    yield "links.pdf", one_page(b"BT /F 9 Tf 5 5 Td (text) Tj ET", media=MEDIA + b" /Annots [%s]" % links)


def crowds():
    """More words, lines and links than pages have: what compares each with each takes long."""
    numbers = b"".join(b"BT /F 2 Tf 5 %.1f Td (%s) Tj ET\n" % (785 - k * 2, b"   ".join(b"%d" % (n * 7 % 99) for n in range(130)))
                       for k in range(390))
    yield "numbers.pdf", one_page(numbers)
    words = b"".join(b"BT /F %d Tf %d %d Td (%s) Tj ET\n" % (2 + n % 5, n * 7 % 600, n * 13 % 780, (b"ab", b"cde", b"12")[n % 3])
                     for n in range(60_000))
    yield "words.pdf", one_page(words)
    links = b"".join(b"<< /Type /Annot /Subtype /Link /Rect [%d 0 %d 1] /A << /S /URI /URI (http://x/%d) >> >> " % (n % 600, n % 600 + 1, n)
                     for n in range(20_000))
    yield "words-links.pdf", one_page(words, media=MEDIA + b" /Annots [%s]" % links)
    inside = b"".join(b"BT /F 2 Tf 60 %d Td (%s) Tj ET\n" % (700 - k * 2, b"12   " * 100) for k in range(300))
    lines = b"".join(b"%.2f %d m %.2f %d l S\n" % (k * 0.03, y, 612 - k * 0.03, y) for k in range(1900) for y in (60, 720))
    yield "lines-around.pdf", one_page(b"0.1 w " + lines + inside)
    one_column = b"/Type /Font /Subtype /Type0 /BaseFont /S /Encoding /UniGB-UCS2-H /DescendantFonts [<< /Type /Font /Subtype " \
        b"/CIDFontType0 /BaseFont /S /CIDSystemInfo << /Registry (Adobe) /Ordering (GB1) /Supplement 2 >> /DW 1000 >>]"
    column = b"BT /C 9 Tf 50 700 Td %s ET" % (b"<4E00> Tj 0 -9 Td " * 100_000)
    yield "standing.pdf", one_page(column, b"/Font << /F 5 0 R /C 6 0 R >>", more=[b"<< %s >>" % one_column])
    noise = random.Random(1)
    yield "png-noise.png", png(1700, 1700, zlib.compress(b"".join(b"\0" + noise.randbytes(1700) for _ in range(1700)), 1))


def cross_references():
    yield "prev-ring.pdf", b"%PDF-1.7\nxref\n0 1\n0000000000 65535 f \ntrailer << /Size 1 /Prev 9 /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"
    yield "size.pdf", b"%PDF-1.7\nxref\n0 2147483647\n0000000000 65535 f \ntrailer << /Size 2147483647 /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"
    stream = b"%PDF-1.7\n1 0 obj\n<< /Type /ObjStm /N 2000000000 /First 10 /Extends 1 0 R /Length 4 >>\nstream\n1 0 \nendstream\nendobj\n"
    yield "object-stream.pdf", stream + b"trailer << /Root 1 0 R >>\nstartxref\n9\n%%EOF\n"
    yield "length-ring.pdf", one_page((b"/Length 4 0 R", b"q Q"))


def png(width, height, packed, depth=8, colour=0, before=b""):
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + before + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def tiff(entries, directories=1, ring=False):
    """Little-endian directories of (tag, type, count, value) entries, one after another."""
    out = bytearray(b"II*\0" + struct.pack("<I", 8))
    length = 2 + 12 * len(entries) + 4
    for n in range(directories):
        out += struct.pack("<H", len(entries))
        for entry in entries:
            out += struct.pack("<HHII", *entry)
        last = n == directories - 1
        out += struct.pack("<I", 8 if ring and last else 0 if last else 8 + length * (n + 1))
    return bytes(out) + bytes(64)


def pictures():
    zeros = deflated_zeros(200 << 20)
    yield "png-square.png", png(14_000, 14_000, zeros)
    yield "png-wide.png", png(2_000_000_000, 1, zeros)
    yield "png-rgba16.png", png(12_000, 12_000, zeros, 16, 6)
    yield "png-nothing.png", png(0, 0, b"")
    text = zlib.compress(bytes(50 << 20), 9)
    body = b"zTXt" + b"k\0\0" + text
    yield "png-text.png", png(10, 10, zlib.compress(bytes(110)), before=struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body)))
    frame = struct.pack(">BHHB", 8, 65_000, 65_000, 3) + bytes([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0])
    yield "jpeg-large.jpg", b"\xff\xd8\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + bytes(100) + b"\xff\xd9"
    gray = [(256, 4, 1, 60_000), (257, 4, 1, 60_000), (258, 3, 1, 8), (259, 3, 1, 8), (262, 3, 1, 1), (273, 4, 1, 8), (278, 4, 1, 60_000), (279, 4, 1, 64)]
    yield "tiff-large.tif", tiff(gray)
    small = [(256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8), (278, 4, 1, 4), (279, 4, 1, 16)]
    yield "tiff-ring.tif", tiff(small, 3, ring=True)
    yield "tiff-directories.tif", tiff(small, 30_000)
    yield "tiff-counts.tif", tiff([(tag, kind, 0xFFFFFFFF, value) for tag, kind, _, value in small])


def all_bombs():
    """(name, bytes) of every bomb."""
    for family in (page_sizes, page_trees, streams, jbig2, jpx, drawings, texts, crowds, cross_references, pictures):
        yield from family()
