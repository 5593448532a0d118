package gatewayctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// completionScripts ask the tool itself for the words, so that they never grow stale.
var completionScripts = map[string]string{
	"bash": `_gatewayctl() { COMPREPLY=($(compgen -W "$(gatewayctl complete -- "${COMP_WORDS[@]:1:COMP_CWORD-1}")" -- "${COMP_WORDS[COMP_CWORD]}")); }
complete -o default -F _gatewayctl gatewayctl
`,
	"zsh": `#compdef gatewayctl
_gatewayctl() { compadd -- $(gatewayctl complete -- ${words[2,CURRENT-1]}) || _files; }
compdef _gatewayctl gatewayctl
`,
	"fish": `function __gatewayctl
  set -l word (commandline -ct)
  set -l words (gatewayctl complete -- (commandline -opc)[2..] | string match -- "$word*")
  if count $words >/dev/null
    printf '%s\n' $words
  else
    __fish_complete_path $word
  end
end
complete -c gatewayctl -f -a '(__gatewayctl)'
`,
}

// Run prints the script.
func (c *completionCommand) Run(s *session) error {
	_, err := fmt.Fprint(s.Stdout, completionScripts[c.Shell])
	return err
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words before the one to complete."`
}

// Run prints what may follow the words, one a line: the commands, the values of an argument or flag, and the flags.
func (c *completeCommand) Run(s *session) error {
	node := s.grammar.Node
	var last string
	for _, word := range c.Words {
		last = word
		for _, child := range node.Children {
			if child.Name == word && !child.Hidden {
				node = child
			}
		}
	}
	for _, word := range nextWords(s.grammar.Node, node, last) {
		fmt.Fprintln(s.Stdout, word)
	}
	return nil
}

// nextWords lists the words after a command.
func nextWords(root, node *kong.Node, last string) []string {
	flags := slices.Concat(root.Flags, node.Flags)
	for _, flag := range flags {
		if "--"+flag.Name == last && !flag.IsBool() {
			return enumValues(flag.Value)
		}
	}
	var words []string
	for _, child := range node.Children {
		if !child.Hidden {
			words = append(words, child.Name)
		}
	}
	for _, argument := range node.Positional {
		words = append(words, enumValues(argument)...)
	}
	for _, flag := range flags {
		words = append(words, "--"+flag.Name)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// enumValues lists what an argument or flag may be, if that is a list.
func enumValues(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return strings.Split(v.Enum, ",")
}
