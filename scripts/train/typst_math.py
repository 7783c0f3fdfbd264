"""Random formulas, as typst and as LaTeX."""

LETTERS = "abcdefghijklmnpqrstuvwxyzABCDEFGHKLMNPQRSTUVWXYZ"
GREEK = [
    ("alpha", r"\alpha"), ("beta", r"\beta"), ("gamma", r"\gamma"), ("theta", r"\theta"), ("lambda", r"\lambda"), ("mu", r"\mu"),
    ("pi", r"\pi"), ("sigma", r"\sigma"), ("omega", r"\omega"), ("epsilon", r"\varepsilon"), ("phi", r"\varphi"), ("Delta", r"\Delta"),
    ("Omega", r"\Omega"), ("Sigma", r"\Sigma"),
]  # fmt: skip
OPERATORS = [
    ("+", "+"), ("-", "-"), ("dot", r"\cdot"), ("times", r"\times"), ("=", "="), ("<=", r"\le"), (">=", r"\ge"), ("in", r"\in"),
    ("approx", r"\approx"),
]  # fmt: skip
DEEPEST = 3


def atom(random_):
    kind = random_.random()
    if kind < 0.5:
        letter = random_.choice(LETTERS)
        return letter, letter
    if kind < 0.75:
        return random_.choice(GREEK)
    number = str(random_.randint(0, 20))
    return number, number


def expression(random_, depth: int = 0):
    """(typst, LaTeX)"""
    kind = random_.random()
    if depth >= DEEPEST or kind < 0.28:
        return atom(random_)
    inner = lambda deeper=1: expression(random_, depth + deeper)  # noqa: E731
    if kind < 0.54:
        base, script = atom(random_), inner(2)
        sign = "_" if kind < 0.42 else "^"
        return f"{base[0]}{sign}({script[0]})", f"{base[1]}{sign}{{{script[1]}}}"
    if kind < 0.66:
        top, bottom = inner(), inner()
        return f"frac({top[0]},{bottom[0]})", rf"\frac{{{top[1]}}}{{{bottom[1]}}}"
    if kind < 0.72:
        body = inner()
        return f"sqrt({body[0]})", rf"\sqrt{{{body[1]}}}"
    if kind < 0.78:
        index, limit, body = atom(random_), inner(), inner()
        return f"sum_({index[0]}=1)^({limit[0]}) {body[0]}", rf"\sum_{{{index[1]}=1}}^{{{limit[1]}}} {body[1]}"
    if kind < 0.83:
        limit, body, variable = inner(2), inner(), random_.choice(LETTERS)
        return f"integral_0^({limit[0]}) {body[0]} dif {variable}", rf"\int_0^{{{limit[1]}}} {body[1]} \, d{variable}"
    if kind < 0.9:
        body = inner()
        return f"({body[0]})", f"({body[1]})"
    left, right, operator = inner(), inner(), random_.choice(OPERATORS)
    return f"{left[0]} {operator[0]} {right[0]}", f"{left[1]} {operator[1]} {right[1]}"


def equation(random_):
    left, right = expression(random_), expression(random_)
    return f"{left[0]} = {right[0]}", f"{left[1]} = {right[1]}"
