"""Stage 4: the alphabet, a deliberate set of characters. `python -m scripts.train.alphabet`

Latin script with the accents of most of Europe's languages, Greek, Russian, Ukrainian and Bulgarian Cyrillic, and the punctuation and symbols
of printed text. Writes data/alphabet/characters.json (code points). It decides the token ids of the pack.
"""
import json
import unicodedata

from .settings import VOCABULARY

ASCII = "".join(map(chr, range(33, 127)))
LATIN_1 = "¡¢£¥§©ª«¬®°±²³´¶·¹º»¼½¾¿×÷¨ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÐÑÒÓÔÕÖØÙÚÛÜÝÞßàáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿ"
LATIN_EXTENDED = "ĀāĂăĄąĆćČčĎďĐđĒēĖėĘęĚěĞğĢģĪīĮįİıĶķĻļĽľŁłŃńŅņŇňŌōŐőŒœŘřŚśŞşŠšŤťŪūŮůŰűŲųŸŹźŻżŽžȘșȚț"
PUNCTUATION = "–—‘’‚“”„†‡•…‰‹›′″"
CURRENCY = "€₹"
SYMBOLS = "™№■□▪●○◦►★✓✗"
ARROWS = "←↑→↓↔⇐⇒⇔↦"
MATHEMATICS = "∀∂∃∇∈∏∑−√∝∞∧∨∩∪∫≃≈≠≡≤≥≪≫⊂⊗⊥⟨⟩∥"
GREEK = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψωάέήίόύώϊϋ"
CYRILLIC = "АБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯабвгдежзийклмнопрстуфхцчшщъыьэюяЁёЄєІіЇїҐґ"
CHARACTERS = ASCII + LATIN_1 + LATIN_EXTENDED + PUNCTUATION + CURRENCY + SYMBOLS + ARROWS + MATHEMATICS + GREEK + CYRILLIC

# Characters that print alike (or nearly so) -> the one that stands for them.
ALIKE = {
    "‐": "-", "‑": "-", "\u00ad": "-", "ʼ": "’", "µ": "μ", "\u2126": "Ω", "∆": "Δ", "⋅": "·", "∙": "·", "\u2329": "⟨", "\u232a": "⟩", "\u3008": "⟨", "\u3009": "⟩", "‖": "∥", "∣": "|",
    "ˆ": "^", "˜": "~", "∗": "*", "∼": "~", "Ţ": "Ț", "ţ": "ț", "ϕ": "φ", "ϵ": "ε", "ϑ": "θ", "ϱ": "ρ", "ϖ": "π", "∘": "◦", "⁄": "/", "⋆": "★",
    "☐": "□", "✔": "✓", "✘": "✗", "▶": "►", "⟵": "←", "⟶": "→", "⟹": "⇒", "⟺": "⇔", "∖": "\\", "ΐ": "ϊ", "ΰ": "ϋ", "\u212b": "Å",
    "Ά": "Α", "Έ": "Ε", "Ή": "Η", "Ί": "Ι", "Ό": "Ο", "Ύ": "Υ", "Ώ": "Ω", "˝": "”",
    **{chr(0xF730 + digit): str(digit) for digit in range(10)},
}  # fmt: skip
MATHEMATICAL_LETTERS = range(0x1D400, 0x1D800)


def canonical(code: int) -> int:
    """The code point that stands for `code`: letters of mathematical type are plain letters, for instance."""
    character = chr(code)
    if code in MATHEMATICAL_LETTERS:
        plain = unicodedata.normalize("NFKC", character)
        character = plain if len(plain) == 1 else character
    return ord(ALIKE.get(character, character))


def main():
    assert len(set(CHARACTERS)) == len(CHARACTERS)
    VOCABULARY.mkdir(parents=True, exist_ok=True)
    (VOCABULARY / "characters.json").write_text(json.dumps([ord(character) for character in CHARACTERS]))
    print(len(CHARACTERS), "characters")


if __name__ == "__main__":
    main()
