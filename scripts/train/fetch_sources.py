"""Stage 1: fetch and unpack the Debian packages with documents, fonts and words. `python -m scripts.train.fetch_sources`

Nothing is installed: `apt-get download`, then `dpkg -x` into the data folder. A package that is there already is left alone;
one that this Debian release does not have is named and skipped.
"""
import subprocess

from .settings import DATA, DOCUMENTS, FONTS, SETTINGS


def fetch(package: str, target) -> bool:
    """Unpacks `package` into `target/package`; False if the release does not have it."""
    if (target / package).is_dir():
        return True
    archives = DATA / "debs"
    archives.mkdir(parents=True, exist_ok=True)
    if not list(archives.glob(f"{package}_*.deb")):
        if subprocess.run(["apt-get", "download", "-qq", package], cwd=archives, stderr=subprocess.DEVNULL).returncode:
            return False
    archive = sorted(archives.glob(f"{package}_*.deb"))[-1]
    part = target / f"{package}.part"
    subprocess.run(["dpkg", "-x", archive, part], check=True)
    part.rename(target / package)
    return True


def main():
    for group, target in (("documents", DOCUMENTS), ("fonts", FONTS), ("words", DATA / "words")):
        target.mkdir(parents=True, exist_ok=True)
        for package in SETTINGS["sources"][group]:
            print("unpacked" if fetch(package, target) else "not in this release:", package, flush=True)


if __name__ == "__main__":
    main()
