//! `docparse --generate`: the man page and shell completions, from the descriptions in `args.rs`.

use std::io;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::{Arguments, Generated};
use super::exit::Outcome;
use super::report::print;

/// Prints what is asked for on stdout.
pub(super) fn generate(what: Generated) -> Outcome {
    let text = match what {
        Generated::Man => man_page(),
        Generated::CompleteBash => completions(Shell::Bash),
        Generated::CompleteZsh => completions(Shell::Zsh),
        Generated::CompleteFish => completions(Shell::Fish),
    };
    print(&text)
}

fn completions(shell: Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "docparse", &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// One page for the program and all its commands.
fn man_page() -> String {
    let mut program = Arguments::command();
    program.build();
    let mut page = rendered(&program, |man, out| man.render(out));
    for command in program.get_subcommands().filter(|command| command.get_name() != "help") {
        push_command(&mut page, command);
    }
    page
}

/// A section for a command and, in it, one for each of its parts.
fn push_command(page: &mut String, command: &Command) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    *page += &format!(".SH \"{name}\"\n");
    let parts = rendered(command, |man, out| {
        man.render_synopsis_section(out)?;
        man.render_description_section(out)?;
        if command.get_arguments().next().is_some() { man.render_options_section(out) } else { Ok(()) }
    });
    for line in parts.lines() {
        // Sections of a page of its own are parts of this one's. The preamble comes once.
        let line = line.strip_prefix(".SH ").map_or_else(|| line.to_owned(), |title| format!(".SS {title}"));
        page.push_str(&line);
        page.push('\n');
    }
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        push_command(page, below);
    }
}

fn rendered(command: &Command, render: impl FnOnce(&Man, &mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    render(&Man::new(command.clone()), &mut out).expect("a vector takes everything");
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_man_page_has_every_flag_of_every_command() {
        let page = man_page();
        fn check(page: &str, command: &Command) {
            for flag in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(page.contains(&format!("\\-\\-{}", flag.replace('-', "\\-"))), "--{flag}");
            }
            command.get_subcommands().for_each(|below| check(page, below));
        }
        check(&page, &Arguments::command());
        for section in [".SH NAME", ".SH \"DOCPARSE CONVERT\"", ".SH \"DOCPARSE MODELS VERIFY\""] {
            assert_eq!(page.matches(section).count(), 1, "{section}");
        }
        assert!(page.contains("Exit codes"));
    }

    #[test]
    fn completions_know_the_flags_of_convert() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(completions(shell).contains("retry-failed"), "{shell}");
        }
    }
}
