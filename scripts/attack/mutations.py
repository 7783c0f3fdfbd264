"""Damage done to good files: flipped bits, cuts, exchanged and repeated pieces, numbers out of bounds."""

import re

NUMBERS = [b"0", b"-1", b"65536", b"2147483647", b"-2147483648", b"4294967296", b"99999999999999999999", b"1e38", b"0.0000001"]
OBJECT = re.compile(rb"\d+ \d+ obj.*?endobj", re.S)
NUMBER = re.compile(rb"(?<![\w.])\d+(?![\w.])")


def flip_bits(random, data, _):
    for _ in range(random.choice((1, 3, 10, 100))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    return data


def flip_bits_at_the_start(random, data, _):
    for _ in range(random.choice((1, 4, 12))):
        data[random.randrange(min(len(data), 400))] ^= 1 << random.randrange(8)
    return data


def cut(random, data, _):
    return data[: random.randrange(1, len(data))]


def cut_out(random, data, _):
    start = random.randrange(len(data))
    del data[start : start + random.choice((1, 20, 500, 5000))]
    return data


def repeat(random, data, _):
    start = random.randrange(len(data))
    piece = data[start : start + random.choice((4, 100, 3000))]
    data[start:start] = piece * random.choice((1, 3, 50))
    return data


def splice(random, data, other):
    """A piece of another file, at any place."""
    start, length = random.randrange(len(other)), random.choice((8, 200, 4000))
    at = random.randrange(len(data))
    data[at : at + random.choice((0, length))] = other[start : start + length]
    return data


def exchange_objects(random, data, other):
    """Objects of another PDF under the numbers of this one's."""
    own, foreign = list(OBJECT.finditer(data)), list(OBJECT.finditer(other))
    if not own or not foreign:
        return splice(random, data, other)
    for _ in range(random.choice((1, 3))):
        target = random.choice(own)
        body = random.choice(foreign).group().split(b"obj", 1)[1]
        head = target.group().split(b"obj", 1)[0] + b"obj"
        if target.end() <= len(data):
            data[target.start() : target.end()] = head + body
    return data


def odd_numbers(random, data, _):
    found = list(NUMBER.finditer(bytes(data[:200_000])))
    for match in sorted(random.sample(found, min(len(found), random.choice((1, 3, 12)))), key=lambda m: -m.start()):
        data[match.start() : match.end()] = random.choice(NUMBERS)
    return data


def odd_bytes(random, data, _):
    for _ in range(random.choice((1, 4))):
        at, length = random.randrange(len(data)), random.choice((1, 2, 4, 8))
        data[at : at + length] = random.choice((b"\xff", b"\x00", b"\x7f", b"\x80")) * length
    return data


KINDS = [flip_bits, flip_bits_at_the_start, cut, cut_out, repeat, splice, exchange_objects, odd_numbers, odd_bytes]


def mutated(random, seeds):
    """(suffix, bytes): one of the seeds, damaged once to three times."""
    suffix, good = random.choice(seeds)
    data = bytearray(good)
    for _ in range(random.choice((1, 1, 2, 3))):
        other = random.choice(seeds)[1]
        data = bytearray(random.choice(KINDS)(random, data, other)) or bytearray(b"%")
    return suffix, bytes(data)
