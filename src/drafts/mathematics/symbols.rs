//! Characters of mathematics: their LaTeX, and what part they play.

/// The LaTeX of a character that is not written as itself.
pub(super) fn command(c: char) -> Option<&'static str> {
    COMMANDS.binary_search_by_key(&c, |&(known, _)| known).ok().map(|at| COMMANDS[at].1)
}

/// Sorted by character. Greek capitals that look like Latin ones have no command.
#[rustfmt::skip]
const COMMANDS: &[(char, &str)] = &[
    ('#', r"\#"), ('$', r"\$"), ('%', r"\%"), ('&', r"\&"), ('*', "*"), ('\\', r"\backslash"), ('_', r"\_"),
    ('{', r"\{"), ('|', r"\vert"), ('}', r"\}"), ('~', r"\sim"), ('¬', r"\neg"), ('°', r"^{\circ}"), ('±', r"\pm"),
    ('·', r"\cdot"), ('×', r"\times"), ('÷', r"\div"), ('Γ', r"\Gamma"), ('Δ', r"\Delta"), ('Θ', r"\Theta"),
    ('Λ', r"\Lambda"), ('Ξ', r"\Xi"), ('Π', r"\Pi"), ('Σ', r"\Sigma"), ('Υ', r"\Upsilon"), ('Φ', r"\Phi"),
    ('Ψ', r"\Psi"), ('Ω', r"\Omega"), ('α', r"\alpha"), ('β', r"\beta"), ('γ', r"\gamma"), ('δ', r"\delta"),
    ('ε', r"\varepsilon"), ('ζ', r"\zeta"), ('η', r"\eta"), ('θ', r"\theta"), ('ι', r"\iota"), ('κ', r"\kappa"),
    ('λ', r"\lambda"), ('μ', r"\mu"), ('ν', r"\nu"), ('ξ', r"\xi"), ('ο', "o"), ('π', r"\pi"), ('ρ', r"\rho"),
    ('ς', r"\varsigma"), ('σ', r"\sigma"), ('τ', r"\tau"), ('υ', r"\upsilon"), ('φ', r"\varphi"), ('χ', r"\chi"),
    ('ψ', r"\psi"), ('ω', r"\omega"), ('ϑ', r"\vartheta"), ('ϕ', r"\phi"), ('ϖ', r"\varpi"), ('ϱ', r"\varrho"),
    ('ϵ', r"\epsilon"), ('–', "-"), ('—', "-"), ('‖', r"\|"), ('†', r"\dagger"), ('‡', r"\ddagger"),
    ('•', r"\bullet"), ('…', r"\ldots"), ('′', r"\prime"), ('″', r"\prime\prime"), ('⁄', "/"), ('ℏ', r"\hbar"),
    ('ℑ', r"\Im"), ('ℓ', r"\ell"), ('℘', r"\wp"), ('ℜ', r"\Re"), ('ℵ', r"\aleph"), ('←', r"\leftarrow"),
    ('↑', r"\uparrow"), ('→', r"\to"), ('↓', r"\downarrow"), ('↔', r"\leftrightarrow"), ('↦', r"\mapsto"),
    ('↪', r"\hookrightarrow"), ('⇀', r"\rightharpoonup"), ('⇌', r"\rightleftharpoons"), ('⇐', r"\Leftarrow"),
    ('⇒', r"\Rightarrow"), ('⇔', r"\Leftrightarrow"), ('∀', r"\forall"), ('∂', r"\partial"), ('∃', r"\exists"),
    ('∅', r"\emptyset"), ('∆', r"\Delta"), ('∇', r"\nabla"), ('∈', r"\in"), ('∉', r"\notin"), ('∋', r"\ni"),
    ('∏', r"\prod"), ('∐', r"\coprod"), ('∑', r"\sum"), ('−', "-"), ('∓', r"\mp"), ('∕', "/"), ('∖', r"\setminus"),
    ('∗', "*"), ('∘', r"\circ"), ('∙', r"\bullet"), ('√', r"\surd"), ('∝', r"\propto"), ('∞', r"\infty"),
    ('∠', r"\angle"), ('∣', r"\mid"), ('∤', r"\nmid"), ('∥', r"\parallel"), ('∧', r"\wedge"), ('∨', r"\vee"),
    ('∩', r"\cap"), ('∪', r"\cup"), ('∫', r"\int"), ('∬', r"\iint"), ('∭', r"\iiint"), ('∮', r"\oint"),
    ('∴', r"\therefore"), ('∵', r"\because"), ('∶', ":"), ('∼', r"\sim"), ('≃', r"\simeq"), ('≅', r"\cong"),
    ('≈', r"\approx"), ('≔', ":="), ('≜', r"\triangleq"), ('≠', r"\neq"), ('≡', r"\equiv"), ('≤', r"\leq"),
    ('≥', r"\geq"), ('≪', r"\ll"), ('≫', r"\gg"), ('≺', r"\prec"), ('≻', r"\succ"), ('⊂', r"\subset"),
    ('⊃', r"\supset"), ('⊄', r"\not\subset"), ('⊆', r"\subseteq"), ('⊇', r"\supseteq"), ('⊊', r"\subsetneq"),
    ('⊎', r"\uplus"), ('⊕', r"\oplus"), ('⊖', r"\ominus"), ('⊗', r"\otimes"), ('⊙', r"\odot"), ('⊢', r"\vdash"),
    ('⊤', r"\top"), ('⊥', r"\perp"), ('⊨', r"\models"), ('⋀', r"\bigwedge"), ('⋁', r"\bigvee"), ('⋂', r"\bigcap"),
    ('⋃', r"\bigcup"), ('⋄', r"\diamond"), ('⋅', r"\cdot"), ('⋆', r"\star"), ('⋮', r"\vdots"), ('⋯', r"\cdots"),
    ('⋱', r"\ddots"), ('⌈', r"\lceil"), ('⌉', r"\rceil"), ('⌊', r"\lfloor"), ('⌋', r"\rfloor"), ('□', r"\square"),
    ('⟨', r"\langle"), ('⟩', r"\rangle"), ('⟵', r"\longleftarrow"), ('⟶', r"\longrightarrow"),
    ('⟹', r"\Longrightarrow"), ('⟺', r"\Longleftrightarrow"), ('⟼', r"\longmapsto"), ('⨀', r"\bigodot"),
    ('⨁', r"\bigoplus"), ('⨂', r"\bigotimes"), ('⩽', r"\leqslant"), ('⩾', r"\geqslant"),
];

/// Operators that are set large; the first take their limits below and above in a displayed formula.
pub(super) fn is_large_operator(c: char) -> bool {
    matches!(
        c,
        '∑' | '∏'
            | '∐'
            | '⋀'
            | '⋁'
            | '⋂'
            | '⋃'
            | '⨀'
            | '⨁'
            | '⨂'
            | '⨄'
            | '∫'
            | '∬'
            | '∭'
            | '∮'
    )
}

pub(super) fn is_relation(c: char) -> bool {
    matches!(
        c,
        '=' | '<'
            | '>'
            | '∈'
            | '∉'
            | '∋'
            | '∼'
            | '≃'
            | '≅'
            | '≈'
            | '≔'
            | '≜'
            | '≠'
            | '≡'
            | '≤'
            | '≥'
            | '≪'
            | '≫'
            | '≺'
            | '≻'
            | '⊂'
            | '⊃'
            | '⊆'
            | '⊇'
            | '⊊'
            | '∝'
            | '⩽'
            | '⩾'
            | '∣'
            | '⊢'
            | '⊨'
            | '⊥'
            | '←'
            | '→'
            | '↔'
            | '↦'
            | '↪'
            | '⇐'
            | '⇒'
            | '⇔'
            | '⟵'
            | '⟶'
            | '⟹'
            | '⟺'
            | '⟼'
            | ':'
            | '∶'
    )
}

pub(super) fn is_binary(c: char) -> bool {
    matches!(
        c,
        '+' | '−'
            | '-'
            | '±'
            | '∓'
            | '×'
            | '÷'
            | '·'
            | '⋅'
            | '∗'
            | '*'
            | '∘'
            | '∙'
            | '∩'
            | '∪'
            | '∧'
            | '∨'
            | '∖'
            | '⊕'
            | '⊖'
            | '⊗'
            | '⊙'
            | '⊎'
            | '⋆'
    )
}

/// The bracket that closes `c`.
pub(super) fn closing(c: char) -> Option<char> {
    Some(match c {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '⟨' => '⟩',
        '⌊' => '⌋',
        '⌈' => '⌉',
        _ => return None,
    })
}

pub(super) fn is_closing(c: char) -> bool {
    matches!(c, ')' | ']' | '}' | '⟩' | '⌋' | '⌉')
}

/// The command of an accent that stands above a letter as a glyph of its own, or as the combining mark of a composed letter.
pub(super) fn accent(c: char) -> Option<&'static str> {
    Some(match c {
        'ˆ' | '^' | '\u{302}' => r"\hat",
        '˜' | '~' | '\u{303}' => r"\tilde",
        '¯' | 'ˉ' | '\u{304}' | '\u{305}' => r"\bar",
        '˙' | '\u{307}' => r"\dot",
        '¨' | '\u{308}' => r"\ddot",
        '→' | '⃗' => r"\vec",
        'ˇ' | '\u{30c}' => r"\check",
        '˘' | '\u{306}' => r"\breve",
        '´' | '\u{301}' => r"\acute",
        '`' | '\u{300}' => r"\grave",
        '˚' | '\u{30a}' => r"\mathring",
        _ => return None,
    })
}

/// Names that LaTeX sets upright as operators of their own.
pub(super) fn is_function(name: &str) -> bool {
    const FUNCTIONS: [&str; 32] = [
        "arccos", "arcsin", "arctan", "arg", "cos", "cosh", "cot", "coth", "csc", "deg", "det", "dim", "exp",
        "gcd", "hom", "inf", "ker", "lg", "lim", "liminf", "limsup", "ln", "log", "max", "min", "Pr", "sec",
        "sin", "sinh", "sup", "tan", "tanh",
    ];
    FUNCTIONS.contains(&name)
}

/// Functions whose limits stand below them in a displayed formula.
pub(super) fn takes_limits(name: &str) -> bool {
    matches!(
        name,
        "det"
            | "gcd"
            | "inf"
            | "lim"
            | "liminf"
            | "limsup"
            | "max"
            | "min"
            | "Pr"
            | "sup"
            | "argmax"
            | "argmin"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_sorted_and_found() {
        assert!(COMMANDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(command('λ'), Some(r"\lambda"));
        assert_eq!(command('x'), None);
    }
}
