# awk -f muster_manual.awk ENVIRONMENT.md PAGE.md: prints PAGE.md, and in place of its line "<!-- sections: PAGE -->" the sections ("## TITLE") of ENVIRONMENT.md. Of a
# section it takes the parts ("### …") without a comment "<!-- page: A, B -->" below their heading, or with one that names PAGE; "muster *" is all of muster's commands,
# "muster others" those that no part of the section before it names.
# It leaves out the heading of a part that is all there is. A row of a table becomes a definition, whose further cells are named by their columns.
{ gsub(/…/, "...") } # a terminal may not show it
FNR == NR { line[++count] = $0; next }
/^<!-- sections: / { insert(substr($0, 16, length($0) - 19)); next }
{ print }

function insert(page,    i, title, in_part, wanted, before, parts, chosen) {
    for (i = 1; i <= count + 1; ++i)
        if (i > count || line[i] ~ /^## /) {
            if (chosen == 1 && before ~ /^\n*$/) sub(/^[^\n]*\n/, "", parts)
            if (title != "") printf "# %s\n%s%s\n", toupper(title), before, parts
            title = substr(line[i], 4)
            in_part = chosen = 0
            before = parts = ""
        } else if (line[i] ~ /^### /) {
            in_part = 1
            wanted = is_for(line[i + 1], page, chosen)
            chosen += wanted
            if (wanted) parts = parts substr(line[i], 2) "\n"
        } else if (!in_part)
            before = before text_of(line[i])
        else if (wanted)
            parts = parts text_of(line[i])
}

function is_for(mark, page, chosen) {
    if (mark !~ /^<!-- page: /) return 1
    mark = ", " substr(mark, 12, length(mark) - 15) ", "
    return index(mark, ", " page ", ") > 0 || (page ~ /^muster / && (index(mark, ", muster *, ") > 0 || (!chosen && index(mark, ", muster others, ") > 0)))
}

function text_of(line,    link, cells, n, i, rest) {
    if (line ~ /^<!--/) return ""
    sub(/^####/, "##", line)
    while (match(line, /\[[^]]*\]\([^)]*\)/)) { # a link: its text alone
        link = substr(line, RSTART + 1, RLENGTH)
        sub(/\].*/, "", link)
        line = substr(line, 1, RSTART - 1) link substr(line, RSTART + RLENGTH)
    }
    if (line !~ /^\|/) {
        rows = 0
        return line "\n"
    }
    n = split(line, cells, / *\| */) - 1
    if (++rows == 1) split(line, columns, / *\| */)
    if (rows < 3) return ""
    for (i = 3; i <= n; ++i)
        if (cells[i] != "") rest = rest (i == 3 ? "" : ". " columns[i] ": ") cells[i]
    return "\n" cells[2] "\n: " rest ".\n"
}
