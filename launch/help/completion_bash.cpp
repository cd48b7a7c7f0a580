#include "launch/help/completion.hpp"

#include <fmt/format.h>

#include "launch/settings/parts.hpp"

namespace muster {

namespace {

/// The script without its tables: {0} stands for the commands' names, {1} the cases of commands, {2} those of options, {3}
/// the other programs.
constexpr std::string_view script = R"SCRIPT(# Completion of muster for bash, printed by: muster completion bash
# WORDS CURRENT PREFIX: those that begin with CURRENT. Not by compgen -W, which runs what $(...) in a word says; and quoted, since it becomes a command's.
_muster_words() {{
    local IFS=$' \t\n' word words
    read -r -d '' -a words <<<"$1"
    COMPREPLY=()
    for word in "${{words[@]}}"; do
        printf -v word %q "$word"
        [[ $word != "$2"* ]] || COMPREPLY+=("$3$word")
    done
}}
_muster_paths() {{
    mapfile -t COMPREPLY < <(compgen -P "$3" "$1" -- "$2")
    compopt -o filenames 2>/dev/null
}}

# CURRENT PREFIX: machines that muster knows by name, and files.
_muster_topologies() {{
    local names
    _muster_words "$("${{COMP_WORDS[0]}}" completion topologies 2>/dev/null)" "$1" "$2"
    names=("${{COMPREPLY[@]}}")
    _muster_paths -f "$1" "$2"
    COMPREPLY+=("${{names[@]}}")
}}

# The queues of the site that --site names on this line.
_muster_queues() {{
    local i site=
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == --site ]] || continue
        site=${{COMP_WORDS[i + 1]}}
        [[ $site == = ]] && site=${{COMP_WORDS[i + 2]}}
    done
    "${{COMP_WORDS[0]}}" completion queues "$site" 2>/dev/null
}}

# OPTION CURRENT PREFIX: the value of an option.
_muster_value() {{
    case $1 in
{2}        *) COMPREPLY=() ;;
    esac
}}

# CURRENT: the argument of a command such as config check.
_muster_argument() {{
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}" in
        'config check' | 'site check') _muster_paths -f "$1" ;;
        'trace merge' | 'trace explain') _muster_paths -d "$1" ;;
        'site show') _muster_words "$("${{COMP_WORDS[0]}}" completion sites 2>/dev/null)" "$1" ;;
        *) return 1 ;;
    esac
    return 0
}}

# INDEX WORDS...: the line of a program that tells its commands and options itself; WORDS ask it, its command is the word at INDEX.
_muster_program() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} at=$1 i
    shift
    COMPREPLY=()
    for ((i = at + 1; i < COMP_CWORD; i++)); do
        [[ ${{COMP_WORDS[i]}} == -- ]] || continue
        if ((COMP_CWORD > i + 1)) && declare -F _command_offset >/dev/null; then
            _command_offset $((i + 1))
        elif ((COMP_CWORD > i + 1)); then
            _muster_paths -f "$cur"
        else
            _muster_paths -c "$cur"
        fi
        return
    done
    local option=${{COMP_WORDS[COMP_CWORD - 1]}} values='' # readline divides --net=mnist into three words
    [[ $option != = ]] || option=${{COMP_WORDS[COMP_CWORD - 2]}}
    [[ $cur != = ]] || cur=
    ((COMP_CWORD < at + 2)) || [[ $option != -* ]] || values=$("$@" completion "${{COMP_WORDS[at]}}" "$option" 2>/dev/null)
    if [[ -n $values ]]; then
        _muster_words "$values" "$cur"
    elif ((COMP_CWORD == at)); then
        _muster_words "$("$@" completion 2>/dev/null) --help --version" "$cur"
    elif [[ $cur == -* ]]; then
        _muster_words "$("$@" completion "${{COMP_WORDS[at]}}" 2>/dev/null)" "$cur"
    else
        _muster_paths -f "$cur"
    fi
}}
_muster_tool() {{ _muster_program 1 "${{COMP_WORDS[0]}}"; }}

_muster() {{
    local cur=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD - 1]}} options='' valued='' arguments='' program='' jobs=''
    local first=2 i
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _muster_words '{0} --help --version' "$cur"
        return
    fi
    case ${{COMP_WORDS[1]}} in
{1}    esac

    if [[ -n $arguments && " $arguments " == *" ${{COMP_WORDS[2]}} "* ]]; then first=3; fi
    for ((i = first; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            --) ((i++)) ;;
            -*)
                if [[ " $valued " == *" ${{COMP_WORDS[i]}} "* ]]; then
                    [[ ${{COMP_WORDS[i + 1]}} == = ]] && ((i++)) # readline divides --bind-to=numa into three words
                    ((i++))
                fi
                continue
                ;;
        esac
        if [[ -z $program ]]; then
            _muster_argument "$cur" || [[ -z $jobs ]] || _muster_words "$("${{COMP_WORDS[0]}}" completion jobs 2>/dev/null)" "$cur"
        elif ((COMP_CWORD == i)); then
            _muster_paths -c "$cur"
        elif declare -F _command_offset >/dev/null; then
            _command_offset "$i"
        else
            _muster_paths -f "$cur"
        fi
        return
    done

    if [[ $cur == --*=* ]]; then
        _muster_value "${{cur%%=*}}" "${{cur#*=}}" "${{cur%%=*}}="
    elif [[ $cur == = ]]; then
        _muster_value "$option" ''
    elif [[ $option == = ]]; then
        _muster_value "${{COMP_WORDS[COMP_CWORD - 2]}}" "$cur"
    elif ((COMP_CWORD > first)) && [[ " $valued " == *" $option "* ]]; then
        _muster_value "$option" "$cur"
    elif [[ $cur == -* ]]; then
        _muster_words "$options" "$cur"
    elif ((COMP_CWORD == 2)) && [[ -n $arguments ]]; then
        _muster_words "$arguments" "$cur"
    elif ((COMP_CWORD > 2)) && _muster_argument "$cur"; then
        :
    elif [[ -n $program ]]; then
        _muster_paths -c "$cur"
    elif [[ -n $jobs ]]; then
        _muster_words "$("${{COMP_WORDS[0]}}" completion jobs 2>/dev/null)" "$cur"
    else
        _muster_words "$options" "$cur"
    fi
}}
complete -F _muster muster
complete -F _muster_tool{3}
)SCRIPT";

/// Every way to write an option: its letter, its name, other tools' names for it.
std::string forms_of(setting const& row, std::string_view between) {
    std::string text = fmt::format("--{}", row.name);
    if (row.letter != 0) text += fmt::format("{}-{}", between, row.letter);
    for (auto const alias : words_of(row.aliases)) {
        bool const single = alias.front() == '-';
        if (single) text += fmt::format("{}{}", between, alias);
        if (alias.substr(single) != row.name) text += fmt::format("{}--{}", between, alias.substr(single));
    }
    return text;
}

std::string commands_text(std::span<command_row const> commands) {
    std::string text;
    for (auto const& row : commands)
        if (!row.hidden) text += fmt::format("{}{}", text.empty() ? "" : " ", row.name);
    return text;
}

std::string command_case(command_row const& command, std::span<setting const> settings) {
    if (command.is_program)
        return fmt::format(
            "        {0})\n            _muster_program 2 \"${{COMP_WORDS[0]}}\" {0}\n            return\n            ;;\n",
            command.name);
    std::string options, valued;
    for (auto const& row : settings) {
        if (!takes(command.name, row) || !has_part(row.part)) continue;
        options += fmt::format("--{}{} ", row.is_on_by_default() ? "no-" : "", row.name);
        if (row.kind != setting_kind::flag) valued += forms_of(row, " ") + " ";
    }
    return fmt::format(
        "        {})\n            options='{}'\n            valued='{}'\n            arguments='{}'{}\n            ;;\n",
        command.name, options, valued, command.arguments,
        command.takes_program ? " program=yes"
        : command.takes_jobs  ? " jobs=yes"
                              : "");
}

std::string value_case(setting const& row) {
    auto const does = [&]() -> std::string {
        switch (source_of(row)) {
            case value_source::choices: return fmt::format("_muster_words '{}' \"$2\" \"$3\"", row.choices);
            case value_source::files: return "_muster_paths -f \"$2\" \"$3\"";
            case value_source::folders: return "_muster_paths -d \"$2\" \"$3\"";
            case value_source::sites:
                return R"WORDS(_muster_words "$("${COMP_WORDS[0]}" completion sites 2>/dev/null)" "$2" "$3")WORDS";
            case value_source::queues: return "_muster_words \"$(_muster_queues)\" \"$2\" \"$3\"";
            case value_source::jobs:
                return R"WORDS(_muster_words "$("${COMP_WORDS[0]}" completion jobs 2>/dev/null)" "$2" "$3")WORDS";
            case value_source::variables: return "_muster_words \"$(compgen -e)\" \"$2\" \"$3\"";
            case value_source::hosts: return "_muster_words \"$(compgen -A hostname)\" \"$2\" \"$3\"";
            case value_source::interfaces: return "_muster_words \"$(ls /sys/class/net 2>/dev/null)\" \"$2\" \"$3\"";
            case value_source::topologies: return R"WORDS(_muster_topologies "$2" "$3")WORDS";
            case value_source::nothing: break;
        }
        return {};
    }();
    return does.empty() ? does : fmt::format("        {}) {} ;;\n", forms_of(row, " | "), does);
}

}  // namespace

std::string bash_completion(completion_tables const& tables) {
    std::string of_commands, of_values, programs;
    for (auto const& row : tables.commands) {
        if (!row.hidden) of_commands += command_case(row, tables.settings);
        if (row.is_program) programs += fmt::format(" muster-{}", row.name);
    }
    for (auto const& row : tables.settings)
        if (has_part(row.part)) of_values += value_case(row);
    return fmt::format(fmt::runtime(script), commands_text(tables.commands), of_commands, of_values, programs);
}

}  // namespace muster
