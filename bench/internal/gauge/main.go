package gauge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

// Main runs a benchmark with the command's arguments until it is done or interrupted, and
// ends the process with status 1 and a line on standard error if it fails. That somebody
// asked for help is no failure.
func Main(name string, run func(ctx context.Context, args []string, w io.Writer) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// Checked reports what cannot be the arguments of a comparison on so many threads, 0 being
// all that there are and one, in so many rounds.
func Checked(f *flag.FlagSet, threads, rounds int) error {
	most := runtime.GOMAXPROCS(0)
	switch {
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case threads < 0 || threads > most:
		return fmt.Errorf("-threads %d: want 1 to %d, or 0 for all and one", threads, most)
	case rounds < 1:
		return fmt.Errorf("-rounds %d: want 1 or more", rounds)
	}
	return nil
}
