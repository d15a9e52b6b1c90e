"""``hitch completion``: the shells' scripts. Click's own, made safe for session names, which may hold anything.

A name reaches the command line only in the shell's own quoting, so it stays one word and nothing in it is run.
"""

from __future__ import annotations

import os

import click
from click.shell_completion import (
    BashComplete,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_HITCH_COMPLETE"

_BASH = r"""
# Completion of hitch for bash 4.4 or newer. Put this line into ~/.bashrc:
#     eval "$(hitch completion bash)"
%(complete_func)s() {
    local line="${COMP_LINE:0:COMP_POINT}" response answer value open="" cut=""
    response=$(COMP_WORDS="$line" COMP_CWORD="" %(complete_var)s=bash_complete "$1" 2>/dev/null) || return
    # bash replaces only what follows the last : or = of the word, unless the word is quoted
    local word="${line##*[[:space:]]}"
    case "${COMP_WORDS[COMP_CWORD]}" in
        \"*|\'*) open="${COMP_WORDS[COMP_CWORD]:0:1}" ;;
        *) [[ $word == *[:=]* && $word != *[\\\"\']* ]] && cut="${word%%"${word##*[:=]}"}" ;;
    esac
    COMPREPLY=()
    while IFS= read -r answer; do
        value="${answer#*,}"
        case "${answer%%%%,*}" in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain)
                [[ $value == "$cut"* ]] || continue
                value="${value#"$cut"}"
                if [[ $open == \" ]]; then
                    [[ $value == *[\"\$\`\\!]* ]] && continue
                elif [[ $open == \' ]]; then
                    [[ $value == *\'* ]] && continue
                else
                    printf -v value %%q "$value"
                fi
                COMPREPLY+=("$value")
                ;;
        esac
    done <<< "$response"
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

_ZSH = r"""
#compdef %(prog_name)s
# Completion of hitch for zsh. Save it as _hitch in a folder of $fpath, or put this line into ~/.zshrc after compinit:
#     eval "$(hitch completion zsh)"
%(complete_func)s() {
    local -a plain described response
    local kind value help
    response=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \
%(complete_var)s=zsh_complete %(prog_name)s 2>/dev/null)}")
    for kind value help in "${response[@]}"; do
        case "$kind" in
            dir) _path_files -/ ;;
            file) _path_files -f ;;
            plain) if [[ "$help" == _ ]]; then plain+=("$value"); else described+=("$value:$help"); fi ;;
        esac
    done
    (( $#described )) && _describe -V unsorted described -U
    (( $#plain )) && compadd -U -V unsorted -a plain
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""

_FISH = r"""
# Completion of hitch for fish. Save it where fish looks for it:
#     hitch completion fish > ~/.config/fish/completions/hitch.fish
function %(complete_func)s
    set -l line (commandline -cp | string collect)
    set -l token (commandline -ct | string collect --allow-empty)
    for completion in (COMP_WORDS="$line" COMP_CWORD="$token" \
        %(complete_var)s=fish_complete %(prog_name)s 2>/dev/null)
        set -l parts (string split --max 1 , -- $completion)
        switch $parts[1]
            case dir
                __fish_complete_directories "$token"
            case file
                __fish_complete_path "$token"
            case plain
                # fish quotes what it inserts, all but a tilde at the beginning
                string match --quiet -- '~*' $parts[2]; or printf '%%s\n' $parts[2]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class Bash(BashComplete):
    """Without ``COMP_CWORD`` it takes the line up to the cursor: bash's own words are cut at every : and =."""

    source_template = _BASH.lstrip()

    @staticmethod
    def _check_version() -> None:
        """The script says which bash it needs; the one that asks may be another than the one on PATH."""

    def get_completion_args(self) -> tuple[list[str], str]:
        if os.environ.get("COMP_CWORD"):
            return super().get_completion_args()
        return cut_at_cursor(os.environ["COMP_WORDS"])


class Zsh(ZshComplete):
    source_template = _ZSH.lstrip()


class Fish(FishComplete):
    source_template = _FISH.lstrip()

    def get_completion_args(self) -> tuple[list[str], str]:
        return cut_at_cursor(os.environ["COMP_WORDS"])


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def register() -> None:
    """Have click answer the shells with these classes."""
    for name, shell in SHELLS.items():
        add_completion_class(shell, name)


def cut_at_cursor(line: str) -> tuple[list[str], str]:
    """The words of ``line`` behind the program, and the one that is being typed: empty after a space."""
    words = split_arg_string(line)
    begun = split_arg_string(line + "x") != [*words, "x"]
    return (words[1:-1], words[-1]) if begun and words else (words[1:], "")


@click.command("completion")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, options and session names in bash, zsh or fish.

    \b
    eval "$(hitch completion bash)"         in ~/.bashrc
    eval "$(hitch completion zsh)"          in ~/.zshrc, after compinit
    hitch completion fish > ~/.config/fish/completions/hitch.fish
    """
    root = ctx.find_root().command
    click.echo(SHELLS[shell](root, {}, "hitch", VARIABLE).source(), nl=False)
