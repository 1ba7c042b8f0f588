#include "sim/cli/complete.h"

#include <stddef.h>
#include <string.h>

/* All shells ask `sim completion words` for the words at the cursor (complete.h). */

/* bash also splits words at '=' and ':', so they are joined first; it then replaces only the part
 * after the last of these. A word that can be extended gets no blank. */
static const char bash[] =
    "# bash completion for sim; made by `sim completion bash`\n"
    "_sim()\n"
    "{\n"
    "    local words=() line i glue='' joined kept=''\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        joined=''\n"
    "        [[ ${COMP_WORDS[i]} == [=:]* || -n $glue ]] && joined=1\n"
    "        glue=''\n"
    "        [[ ${COMP_WORDS[i]} == [=:] ]] && glue=1\n"
    "        if [[ -n $joined && ${#words[@]} -gt 0 ]]; then\n"
    "            kept=${words[-1]}\n"
    "            [[ -n $glue ]] && kept+=${COMP_WORDS[i]}\n"
    "            words[-1]+=${COMP_WORDS[i]}\n"
    "        else\n"
    "            kept=''\n"
    "            words+=(\"${COMP_WORDS[i]}\")\n"
    "        fi\n"
    "    done\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        if [[ $line == :files ]]; then\n"
    "            while IFS= read -r line; do\n"
    "                COMPREPLY+=(\"$line\")\n"
    "            done < <(compgen -f -- \"${words[-1]}\")\n"
    "            compopt -o filenames 2>/dev/null\n"
    "        else\n"
    "            [[ $line == *[/=] ]] && compopt -o nospace 2>/dev/null\n"
    "            COMPREPLY+=(\"${line#\"$kept\"}\")\n"
    "        fi\n"
    "    done < <(\"${COMP_WORDS[0]}\" completion words -- \"${words[@]}\" 2>/dev/null)\n"
    "}\n"
    "complete -F _sim sim\n";

/* Can be sourced, or be a file named _sim in a folder of $fpath. */
static const char zsh[] = "#compdef sim\n"
                          "# zsh completion for sim; made by `sim completion zsh`\n"
                          "_sim()\n"
                          "{\n"
                          "    local line word files\n"
                          "    local -a whole shown open\n"
                          "    for line in \"${(@f)$(${(Q)words[1]} completion words -- \\\n"
                          "            \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
                          "        word=${line%%$'\\t'*}\n"
                          "        case $word in\n"
                          "        '') ;;\n"
                          "        :files) files=1 ;;\n"
                          "        *[/=]) open+=(\"$word\") ;;\n"
                          "        *) whole+=(\"$word\"); shown+=(\"${line/$'\\t'/  -- }\") ;;\n"
                          "        esac\n"
                          "    done\n"
                          "    (( $#open )) && compadd -S '' -- \"${open[@]}\"\n"
                          "    (( $#whole )) && compadd -l -d shown -- \"${whole[@]}\"\n"
                          "    [[ -n $files ]] && _files\n"
                          "    return 0\n"
                          "}\n"
                          "if [[ ${funcstack[1]} == _sim ]]; then\n"
                          "    _sim \"$@\"\n"
                          "else\n"
                          "    compdef _sim sim\n"
                          "fi\n";

static const char fish[] =
    "# fish completion for sim; made by `sim completion fish`\n"
    "function __sim_words\n"
    "    set -l words (commandline -opc)\n"
    "    set -l current (commandline -ct)\n"
    "    set -l program $words[1]\n"
    "    set -e words[1]\n"
    "    for line in (command $program completion words -- $words \"$current\" 2>/dev/null)\n"
    "        if test \"$line\" = :files\n"
    "            __fish_complete_path \"$current\"\n"
    "        else\n"
    "            printf '%s\\n' $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c sim -f -a '(__sim_words)'\n";

const char *const cs_completion_shells[] = {"bash", "zsh", "fish", "words", NULL};

const char *cs_completion_code(const char *shell)
{
    static const char *const codes[] = {bash, zsh, fish};
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (strcmp(cs_completion_shells[i], shell) == 0)
            return codes[i];
    return NULL;
}
