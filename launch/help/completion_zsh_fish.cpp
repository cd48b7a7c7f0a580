#include "launch/help/completion.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace muster {

namespace {

std::string name_of(setting const& row) {
    return fmt::format("{}{}", row.is_on_by_default() ? "no-" : "", row.name);
}

/// `text` for a specification of zsh's _arguments, in single quotes of the shell.
std::string zsh_text(std::string_view text) {
    std::string escaped;
    for (char const c : text) {
        if (c == ':' || c == '[' || c == ']' || c == '\\') escaped += '\\';
        escaped += c == '\'' ? "'\\''" : std::string(1, c);
    }
    return escaped;
}

std::string zsh_action(setting const& row) {
    switch (source_of(row)) {
        case value_source::choices: return fmt::format("({})", row.choices);
        case value_source::files: return "_files";
        case value_source::folders: return "_files -/";
        case value_source::sites: return " _muster_asked sites";
        case value_source::queues:
            return " _muster_asked queues \"${${words[(r)--site=*]#--site=}:-${words[${words[(i)--site]}+1]}}\"";
        case value_source::jobs: return " _muster_asked jobs";
        case value_source::variables: return "_parameters -g \"*export*\"";
        case value_source::hosts: return "_hosts";
        case value_source::interfaces: return "_net_interfaces";
        case value_source::topologies: return " _muster_topologies";
        case value_source::nothing: break;
    }
    return " ";
}

std::string zsh_option(setting const& row) {
    auto const name = name_of(row);
    bool const is_flag = row.kind == setting_kind::flag;
    auto const help = fmt::format("[{}]", zsh_text(row.help));
    auto const value = is_flag ? std::string() : fmt::format(":{}:{}", zsh_text(row.argument), zsh_action(row));
    auto const repeats = row.kind == setting_kind::list ? "*" : "";
    if (row.letter == 0) return fmt::format("                '{}--{}{}{}{}'", repeats, name, is_flag ? "" : "=", help, value);
    auto const excluded = row.kind == setting_kind::list ? std::string("'*'") : fmt::format("'(-{} --{})'", row.letter, name);
    return fmt::format("                {}{{-{}{},--{}{}}}'{}{}'", excluded, row.letter, is_flag ? "" : "+", name,
                       is_flag ? "" : "=", help, value);
}

std::string zsh_case(command_row const& command, std::span<setting const> settings) {
    if (command.is_program)
        return fmt::format("        {0})\n            _muster_program muster {0}\n            ;;\n", command.name);
    auto text = fmt::format("        {})\n            _arguments -s -S \\\n", command.name);
    for (auto const& row : settings)
        if (is_listed(command.name, row)) text += zsh_option(row) + " \\\n";
    if (command.takes_program)
        text += "                '(-)1:program:_command_names -e' '*::arguments:_normal'\n";
    else if (command.takes_jobs)
        text += "                '*:job: _muster_asked jobs'\n";
    else if (!command.arguments.empty())
        text += fmt::format("                '1:what:({})' '*:file:_files'\n", command.arguments);
    else
        text += "                '*:file:_files'\n";
    return text + "            ;;\n";
}

std::string fish_option(command_row const& command, setting const& row) {
    auto text = fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -l {}", command.name, name_of(row));
    if (row.letter != 0) text += fmt::format(" -s {}", row.letter);
    switch (source_of(row)) {
        case value_source::choices: text += fmt::format(" -x -a '{}'", row.choices); break;
        case value_source::files: text += " -r -F"; break;
        case value_source::folders: text += " -x -a '(__fish_complete_directories)'"; break;
        case value_source::sites: text += " -x -a '(muster completion sites 2>/dev/null)'"; break;
        case value_source::queues: text += " -x -a '(muster completion queues (__muster_site) 2>/dev/null)'"; break;
        case value_source::jobs: text += " -x -a '(muster completion jobs 2>/dev/null)'"; break;
        case value_source::variables: text += " -x -a '(set --names --export)'"; break;
        case value_source::hosts: text += " -x -a '(__fish_print_hostnames)'"; break;
        case value_source::interfaces: text += " -x -a '(__fish_print_interfaces)'"; break;
        case value_source::topologies: text += " -r -F -a '(muster completion topologies 2>/dev/null)'"; break;
        case value_source::nothing: text += row.kind == setting_kind::flag ? "" : " -x"; break;
    }
    return fmt::format("{} -d {}\n", text, shell_quote(row.help));
}

}  // namespace

std::string zsh_completion(completion_tables const& tables) {
    std::string names, cases, programs;
    for (auto const& row : tables.commands) {
        if (row.hidden) continue;
        names += fmt::format("        '{}:{}'\n", row.name, zsh_text(row.summary));
        cases += zsh_case(row, tables.settings);
        if (row.is_program) programs += fmt::format(" muster-{}", row.name);
    }
    return fmt::format(R"ZSH(#compdef muster{2}
# Completion of muster for zsh, printed by: muster completion zsh

# WORDS...: what muster completion WORDS prints, for one or, by commas, several. Not by _values, which runs what :x:{{...}} in a name says.
_muster_asked() {{
    [[ $1 != jobs ]] || compset -P '*,'
    compadd -- ${{(f)"$(muster completion "$@" 2>/dev/null)"}}
}}

# Machines that muster knows by name, and files.
_muster_topologies() {{
    _muster_asked topologies
    _files
}}

# WORDS...: the line of a program that tells its commands and options itself; WORDS ask it.
_muster_program() {{
    local -a values
    (( CURRENT < 4 )) || [[ $words[CURRENT-1] != -* ]] || values=(${{(f)"$("$@" completion $words[2] $words[CURRENT-1] 2>/dev/null)"}})
    if (( $#values )); then
        compadd -- $values
    elif (( CURRENT == 2 )); then
        compadd -- ${{(f)"$("$@" completion 2>/dev/null)"}} --help --version
    elif [[ $PREFIX == -* ]]; then
        compadd -- ${{(f)"$("$@" completion $words[2] 2>/dev/null)"}}
    else
        _files
    fi
}}

_muster() {{
    if [[ $service == muster-* ]]; then
        _muster_program $service
        return
    fi
    local context state state_descr line curcontext=$curcontext
    typeset -A opt_args
    local -a commands=(
{0})
    _arguments -C '--version[the version]' '--help[the commands]' '1:command:->command' '*::argument:->argument'
    case $state in
        command) _describe command commands ;;
        argument)
        case $words[1] in
{1}        esac
        ;;
    esac
}}
if [ "$funcstack[1]" = _muster ]; then _muster "$@"; else compdef _muster muster{2}; fi
)ZSH",
                       names, cases, programs);
}

std::string fish_completion(completion_tables const& tables) {
    std::string text = "# Completion of muster for fish, printed by: muster completion fish\ncomplete -c muster -f\n";
    text += R"FISH(# The site that --site names on this line.
function __muster_site
    set -l words (commandline -opc)
    for i in (seq (count $words))
        string match -q -- '--site=*' $words[$i]; and string replace -- '--site=' '' $words[$i]
        test "$words[$i]" = --site; and test $i -lt (count $words); and echo $words[(math $i + 1)]
    end
end
# The words of a program that tells its commands and options itself; the arguments ask it.
function __muster_program
    set -l words (commandline -opc)
    set -l at (math (count $argv) + 1)
    if test (count $words) -lt $at
        $argv completion 2>/dev/null
    else
        string match -q -- '-*' $words[-1]; and $argv completion $words[$at] $words[-1] 2>/dev/null
        $argv completion $words[$at] 2>/dev/null
    end
end
)FISH";
    for (auto const& command : tables.commands) {
        if (command.hidden) continue;
        if (command.is_program)
            text += fmt::format(
                "complete -c muster -n '__fish_seen_subcommand_from {0}' -F -a '(__muster_program muster {0})'\n"
                "complete -c muster-{0} -a '(__muster_program muster-{0})'\n",
                command.name);
        text +=
            fmt::format("complete -c muster -n __fish_use_subcommand -a {} -d {}\n", command.name, shell_quote(command.summary));
        if (!command.arguments.empty())
            text +=
                fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -a '{}'\n", command.name, command.arguments);
        if (command.takes_jobs)
            text +=
                fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -a '(muster completion jobs 2>/dev/null)'\n",
                            command.name);
        if (command.takes_program)
            text += fmt::format("complete -c muster -n '__fish_seen_subcommand_from {}' -F\n", command.name);
        for (auto const& row : tables.settings)
            if (is_listed(command.name, row)) text += fish_option(command, row);
    }
    return text;
}

}  // namespace muster
