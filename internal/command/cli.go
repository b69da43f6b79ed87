package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/gomem/gomem/train"
)

// The exit statuses. What a signal cut short has 128 and the signal's number,
// unless it is a run that was saved: that is a success.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// cli is the command line.
type cli struct {
	Help helpFlag `short:"h" help:"Show help, for a command if one is given, and exit."`
	logFlags
	Pprof    string   `placeholder:"KIND"`
	PprofDir location `default:"." placeholder:"DIR"`

	Train   trainCmd   `cmd:"" help:"Train a model under a memory budget."`
	Predict predictCmd `cmd:"" help:"Translate, classify, transcribe or draw with a trained model."`
	Eval    evalCmd    `cmd:"" help:"Print the metrics of training for any data."`
	Export  exportCmd  `cmd:"" help:"Write a checkpoint of gpt in the form that others read."`
	Plan    planCmd    `cmd:"" help:"Plan a training step and explain its memory; run nothing."`
	Fit     fitCmd     `cmd:"" help:"Find the largest batch, depth or the like that fits."`
	Profile profileCmd `cmd:"" help:"Say where the memory and the time of a step go."`
	Diff    diffCmd    `cmd:"" help:"Say what changed between two plans."`
	Bench   benchCmd   `cmd:"" help:"Measure, beside published results."`
	Restore restoreCmd `cmd:"" help:"Make a checkpoint of any step from a log of updates."`
	Doctor  doctorCmd  `cmd:"" help:"Check the machines of a job of several processes."`
	Fabric  fabricCmd  `cmd:"" help:"Simulate networks of workers, as MLfabric has them."`
	Explain loopCmd    `cmd:"" name:"explain-loop" help:"Say how workers can run a loop."`
	Devices devicesCmd `cmd:"" help:"List the devices."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

func (cli) examples() string {
	return `
  gomem train --model moe --partition 200        train on the Go documentation
  gomem plan --size base                         what 860 million parameters need
  gomem train --help                             every flag of a command
`
}

// env is what commands work with besides their flags.
type env struct {
	args           []string        // the whole command line, to show how to repeat it
	given          map[string]bool // the flags that are there, by name
	stdin          io.Reader
	stdout, stderr io.Writer
	log            *slog.Logger
	extras         Extras
}

// enums are the words that flags may be.
var enums = kong.Vars{"forms": rateForms, "optimizers": optimizerNames,
	"rnns": ",fused,unrolled,scanned", "stores": ",bf16,f16,q8_0,q6_k,q4_k,q4_0,nf4",
	"holds": ",f32,bf16,f16,q8_0,q6_k,q4_k,q4_0,nf4",
	"size":  usualSize}

// Main executes a command line, without the program's name, and returns the exit status.
// When nobody reads standard output any longer, what is under way is ended in order,
// without a word about it.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, x Extras) int {
	tameScheduler()
	defer withinGroup()()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{w: stdout, broken: func() { cancel(signalled{syscall.SIGPIPE}) }}
	err := execute(ctx, args, out, stderr, x)
	done := err == nil || errors.Is(err, errHelp) || errors.Is(err, errDiffer) ||
		errors.Is(err, errSome)
	launched, elsewhere := errors.AsType[*launchedError](err)
	worker, failed := errors.AsType[*WorkerError](err)
	cancelled := ctx.Err() != nil && errors.Is(err, context.Canceled)
	switch {
	case out.unread() && (done || cancelled || errors.Is(err, out.err)):
		return exitSignal(ctx)
	case out.err != nil && (done || errors.Is(err, out.err)):
		err = out.err
	case errors.Is(err, errDiffer) || errors.Is(err, errSome):
		return exitFailure
	case elsewhere:
		return launched.status
	case failed: // and has said why
		return worker.Status
	case done:
		return exitOK
	case cancelled:
		err = interrupted(err)
	}
	fmt.Fprintf(stderr, "gomem: %s\n", oneLine(err))
	return status(ctx, err)
}

// status is the exit status of an error.
func status(ctx context.Context, err error) int {
	if _, usage := errors.AsType[*usageError](err); usage {
		return exitUsage
	}
	if _, stopped := errors.AsType[*stoppedError](err); stopped {
		return exitSignal(ctx)
	}
	return exitFailure
}

// tameScheduler takes back a GOMAXPROCS beyond the threads that an operation can
// use: kernels and readers start as many.
func tameScheduler() {
	if runtime.GOMAXPROCS(0) > max(maxThreads, runtime.NumCPU()) {
		runtime.GOMAXPROCS(runtime.NumCPU())
	}
}

// newParser reads command lines into c.
func newParser(ctx context.Context, c *cli, stdout, stderr io.Writer, x Extras) (*kong.Kong,
	error) {
	return kong.New(c,
		kong.Name(x.name()),
		kong.Description("Trains and runs neural networks that do not fit in device memory, "+
			"under a hard memory budget."),
		kong.NoDefaultHelp(),
		kong.Help(printHelp),
		kong.Writers(stdout, stderr),
		kong.WithHyphenPrefixedParameters(true),
		kong.ExplicitGroups(groups),
		kong.PostBuild(describe),
		kong.PostBuild(x.hide),
		kong.PostBuild(arrange),
		enums,
		times,
		kong.BindTo(ctx, (*context.Context)(nil)),
	)
}

// parse reads a command line. A flag without a text, such as a shell's variable that is not set
// leaves, is none of a word, as it is none of a path.
func parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	command, err := parser.Parse(args)
	if err != nil {
		return nil, asUsage(err)
	}
	for _, p := range command.Path {
		if p.Flag != nil && p.Flag.Target.Kind() == reflect.String && p.Flag.Target.String() == "" {
			return nil, usagef("--%s: it is empty: give a word, or leave the flag out; see gomem "+
				"--help", p.Flag.Name)
		}
	}
	return command, nil
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer, x Extras) error {
	var c cli
	parser, err := newParser(ctx, &c, stdout, stderr, x)
	if err != nil {
		return err
	}
	command, err := parse(parser, args)
	if err != nil {
		return err
	}
	c.Train.config.flags = runFlags(command)
	e := &env{extras: x, args: args, given: flagsGiven(command), stdin: os.Stdin,
		stdout: stdout, stderr: stderr, log: c.logger(stderr)}
	stop, err := startProfile(c.Pprof, string(c.PprofDir))
	if err != nil {
		return err
	}
	err = onGPU(command.Run(e))
	if failed := stop(); err == nil {
		err = failed
	}
	return err
}

// flagsGiven are the flags of a command line, by name.
func flagsGiven(command *kong.Context) map[string]bool {
	given := map[string]bool{}
	for _, p := range command.Path {
		if p.Flag != nil {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// usageError is a command line that makes no sense.
type usageError struct{ err error }

// Error is the cause's message.
func (e *usageError) Error() string { return e.err.Error() }

// Unwrap is the cause.
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// asUsage makes a parse error, other than the wish for help or a failure to print it, a
// usage error. That a flag may also be left out is not said as a word that it may be.
func asUsage(err error) error {
	if errors.Is(err, errHelp) {
		return err
	}
	const empty, words = `must be one of "",`, "must be one of "
	if text := err.Error(); strings.Contains(text, empty) {
		return usagef("%s; see gomem --help", strings.Replace(text, empty, words, 1))
	}
	return usagef("%w; see gomem --help", err)
}

// longest is how many bytes of a word an error repeats; a path may have several hundred.
const longest = 1000

// oneLine is an error's message on one line, without the façade's prefix, which
// is the command's name too. It gives a terminal no orders, whatever names are in it.
func oneLine(err error) string {
	text := strings.TrimPrefix(err.Error(), "gomem: ")
	text = strings.Join(strings.FieldsFunc(text,
		func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	words := strings.Split(text, " ")
	for i, word := range words {
		if len(word) > longest {
			words[i] = fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(word[:100], ""), len(word))
		}
		if strings.ContainsFunc(word, unprintable) {
			words[i] = plain(words[i])
		}
	}
	return strings.Join(words, " ")
}

// unprintable reports a character that a terminal may not show as one.
func unprintable(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }

// plain has such characters escaped, as in \x1b.
func plain(word string) string {
	var b strings.Builder
	for i, r := range word {
		switch _, n := utf8.DecodeRuneInString(word[i:]); {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, word[i])
		case unprintable(r):
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// stoppedError says what a signal cut short, with nothing to continue from.
type stoppedError struct{ text string }

// Error is the text.
func (e *stoppedError) Error() string { return e.text }

// errInterrupted stands for the end of whatever was under way, which keeps nothing by its nature.
var errInterrupted = &stoppedError{"interrupted"}

// unsavedError is the end of what would have kept something.
type unsavedError struct{ error }

// Unwrap is the cause.
func (e *unsavedError) Unwrap() error { return e.error }

// interrupted is what is said of work that a signal has ended.
func interrupted(err error) error {
	if _, unsaved := errors.AsType[*unsavedError](err); unsaved {
		return &stoppedError{errInterrupted.text + "; nothing was saved"}
	}
	return errInterrupted
}

// errHelp ends parsing when help was printed.
var errHelp = errors.New("help was asked for")

// helpFlag is --help.
type helpFlag bool

// BeforeReset prints the help of the command that was parsed so far.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	return errHelp
}

// exampler is a command with examples.
type exampler interface{ examples() string }

// printHelp is kong's help with the command's examples at the end.
func printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	width := widthOf(ctx.Stdout)
	o.WrapUpperBound = width
	if err := kong.DefaultHelpPrinter(o, ctx); err != nil {
		return err
	}
	target := ctx.Model.Target
	if n := ctx.Selected(); n != nil {
		target = n.Target
	}
	if e, ok := target.Interface().(exampler); ok {
		_, err := fmt.Fprintf(ctx.Stdout, "\nExamples:\n%s", aligned(e.examples(), width))
		return err
	}
	return nil
}

// aligned sets examples, a command line and what it does, two spaces or more apart, in two
// columns, or where these are too wide the second below the first.
func aligned(examples string, width int) string {
	var pairs [][2]string
	commands, texts := 0, 0
	for line := range strings.Lines(strings.TrimSpace(examples)) {
		command, text, _ := strings.Cut(strings.TrimSpace(line), "  ")
		text = strings.TrimSpace(text)
		pairs = append(pairs, [2]string{command, text})
		commands, texts = max(commands, len(command)), max(texts, len(text))
	}
	var b strings.Builder
	for _, p := range pairs {
		if 2+commands+2+texts <= width {
			fmt.Fprintf(&b, "  %-*s  %s\n", commands, p[0], p[1])
			continue
		}
		for _, column := range []struct {
			indent int
			text   string
		}{{2, p[0]}, {6, p[1]}} {
			for line := range strings.Lines(train.Folded(column.text, width-column.indent)) {
				fmt.Fprintf(&b, "%*s%s\n", column.indent, "", strings.TrimSuffix(line, "\n"))
			}
		}
	}
	return b.String()
}
