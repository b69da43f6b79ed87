package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/gomem/gomem/internal/longtest"
)

// nonsense is what somebody, or a script that went wrong, may give any flag.
func nonsense() []string {
	return []string{"", " ", "99999999999999999999", "-1", "NaN", "1e999", ".", "\x1b[2Jx",
		"a\x00b", "\xff", "two\nlines", strings.Repeat("x", 4<<10)}
}

// TestNonsenseFlags: whatever is given to whatever flag of whatever command is refused as misuse,
// in one line that names the flag and that a terminal can show, unless it may be meant, such as
// the path of a file. In the long form that is given to the command, with a context that has ended:
// it ends at once, in one such line, and has written nothing.
func TestNonsenseFlags(t *testing.T) {
	longtest.Skip(t)
	dir := inDir(t)
	before := names(t, dir)
	for _, command := range leaves(t) {
		read := reader(t)
		for _, flag := range valuedFlags(command) {
			taken := -1
			for i, value := range nonsense() {
				line := lineOf(command, flag, value)
				err := read(line)
				if err == nil {
					taken = i
					continue
				}
				_, usage := errors.AsType[*usageError](err)
				if said := oneLine(err); !usage || !oneShownLine(said) ||
					!strings.Contains(said, "--"+flag.Name) {
					t.Errorf("gomem %.60q is refused: %.300q", line, said)
				}
			}
			if taken == 0 {
				t.Errorf("%s --%s takes nothing for something", command.FullPath(), flag.Name)
			}
			if taken > 0 && longtest.Enabled() {
				mustEnd(t, lineOf(command, flag, nonsense()[taken]))
			}
		}
	}
	for _, line := range [][]string{
		{"train", "--save", "\x1b[2J"}, {"train", "--data", "tsv:\x1b[2J"},
		{"train", "--policy", strings.Repeat("x", 4<<10)}, {"train", "--mesh", "\x1b[2J:2"},
		{"plan", "--precision", "\xff"}, {"predict", "--from", "a\x00b"},
		{"diff", "\x1b[2J", strings.Repeat("y", 100<<10)}, {"bench", "nothing\x07"},
		{"\x1b[2J"}, {"--" + strings.Repeat("x", 4<<10)},
	} {
		mustEnd(t, line)
	}
	if after := names(t, dir); after != before {
		t.Errorf("files are %s, were %s", after, before)
	}
}

// mustEnd demands that a command line ends at once, in one line, when its context has ended.
func mustEnd(t *testing.T, line []string) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	status := Main(ended, line, &stdout, &stderr, Extras{})
	said := strings.TrimSuffix(notices.ReplaceAllString(stderr.String(), ""), "\n")
	if status == exitOK || !oneShownLine(said) {
		t.Errorf("gomem %.60q: status %d, standard error %.300q", line, status, said)
	}
}

// reader reads command lines and returns their errors.
func reader(t *testing.T) func(line []string) error {
	t.Helper()
	var c cli
	parser, err := newParser(t.Context(), &c, io.Discard, io.Discard, Extras{})
	if err != nil {
		t.Fatal(err)
	}
	return func(line []string) error {
		_, err := parse(parser, line)
		return err
	}
}

// lineOf is a command with a flag, and with the arguments and flags that it needs.
func lineOf(command *kong.Node, flag *kong.Flag, value string) []string {
	line := append(strings.Fields(command.FullPath())[1:], "--"+flag.Name+"="+value)
	for _, p := range command.Positional {
		line = append(line, "no-such-"+p.Name)
	}
	for _, f := range valuedFlags(command) {
		if f.Required && f.Name != flag.Name {
			line = append(line, "--"+f.Name+"=no-such-"+f.Name)
		}
	}
	return line
}

// leaves are the commands that there are.
func leaves(t *testing.T) []*kong.Node {
	t.Helper()
	var c cli
	parser, err := newParser(t.Context(), &c, io.Discard, io.Discard, Extras{})
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Leaves(false)
}

// valuedFlags are a command's flags that take a value.
func valuedFlags(command *kong.Node) (flags []*kong.Flag) {
	for _, group := range command.AllFlags(false) {
		for _, f := range group {
			if !f.IsBool() {
				flags = append(flags, f)
			}
		}
	}
	return flags
}

// oneShownLine reports whether a text is a line of some length that can be shown.
func oneShownLine(text string) bool {
	return text != "" && len(text) < 2*longest && !strings.ContainsFunc(text, unprintable)
}

// names are all files below a directory.
func names(t *testing.T, dir string) string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		all = append(all, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(all, " ")
}
