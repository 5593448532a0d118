package gatewayctl

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// firstSteps are the commands for the first questions of an engineer on call.
const firstSteps = `gatewayctl operates the gateway. A change is a dry run, unless --yes is given.

What to do first
  gatewayctl attention                                what waits for a person, with the command that ends it
  gatewayctl find --amount 1005 --since 08:00         where is the payment?
  gatewayctl operator status                          which operators are down?
  gatewayctl deliveries list MERCHANT                 was the merchant notified?

--local works on the local run, --stack NAME on a deployment. COMMAND --help explains a command, docs/walkthroughs.md
has whole cases.
`

// writeGuide writes what to do first, and all commands by subject.
func (t *Tool) writeGuide(to io.Writer) error {
	t.restoreCommands()
	_, err := io.WriteString(to, firstSteps+commandsOf(t.parser.Model.Node)+"\n")
	return err
}

// commandsOf lists the commands below a node by subject.
func commandsOf(node *kong.Node) string {
	var text strings.Builder
	subject := ""
	for _, command := range node.Children {
		if title := command.ClosestGroup().Title; title != subject {
			text.WriteString("\n\n" + title)
			subject = title
		}
		fmt.Fprintf(&text, "\n  %-15s %s", command.Name, command.Help)
	}
	return text.String()
}

// listMissingCommand lists all commands, by subject, in the error of a line that ends before its command. The parser's
// own error names five of them, and no others of their subjects.
func listMissingCommand(err error) error {
	failed, isParseError := errors.AsType[*kong.ParseError](err)
	if !isParseError || !strings.HasPrefix(err.Error(), "expected one of") {
		return err
	}
	return errors.New("expected one of these commands; --stack NAME or --local: where, COMMAND --help: how" +
		commandsOf(cmp.Or(failed.Context.Selected(), failed.Context.Model.Node)))
}
