// Package session is one run of a command of gatewayctl.
//
// A command reads by its session and shows what would change. It changes things only within Execute: with --yes between
// the two writes of its audit record, else as a dry run.
package session

import (
	"context"
	"io"
	"regexp"
	"strings"

	"mobilegateway/gatewayctl/deployment"
	"mobilegateway/shared/merchant"
)

// The flag of the local run, and where its folder is.
const (
	LocalFlag     = "local"
	LocalVariable = "LOCAL_DIR"
	LocalFolder   = ".local"
)

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_./:=,@%+-]+$`)

// Command is a command line of this tool, for a person to run.
func (s *Session) Command(arguments ...string) string {
	words := []string{"gatewayctl"}
	if s.Local {
		words = append(words, "--"+LocalFlag)
	}
	for _, word := range arguments {
		words = append(words, ShellWord(word))
	}
	return strings.Join(words, " ")
}

// ShellWord quotes a word for a shell if it needs quotes.
func ShellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ConfirmArguments adds the flags of a change to a command's arguments.
func ConfirmArguments(arguments ...string) []string {
	return append(arguments, "--yes", "--reason", "REASON")
}

// Flags are those of all commands.
type Flags struct {
	deployment.Names `group:"Deployment"`

	Local  bool   `help:"Work on the local run of this folder, or of $$LOCAL_DIR: its tables, secrets and sandbox."`
	JSON   bool   `name:"json" help:"Write JSON, for programs."`
	Yes    bool   `help:"Apply the change. Without it the change is a dry run."`
	Reason string `placeholder:"REASON" help:"The reason, for the audit record; --yes needs it."`
}

// ProvideMerchants returns AllMerchants for the Run methods of all commands (kong's provider).
func (Flags) ProvideMerchants(s *Session) ([]*merchant.Profile, error) {
	return s.AllMerchants()
}

// Session is one run of the tool. Commands change things only within Execute.
type Session struct {
	context.Context
	deployment.System
	*Flags
	Stores *deployment.Stores // set by OpenStores; those of ReadOnly in a dry run
	Plan   string             // the detail of the first audit record: what must be known if the change is interrupted
	// Documents is the standard output for a document whose texts are masked: masking it whole would cross them.
	Documents io.Writer
	isDryRun  bool // a change was tried and not made
}

// OpenStores connects to the deployment once. It is called after the command line is checked, so that a wrong line is
// reported without a deployment.
func (s *Session) OpenStores() (err error) {
	if s.Stores != nil {
		return nil
	}
	s.Stores, err = s.Connect(s.System, s.Names)
	if err == nil && !s.Yes {
		s.Stores = s.Stores.ReadOnly()
	}
	return err
}
