// Examples runs the programs of examples/ and their twins of bench/gomlx, which do the same
// with GoMLX, one after the other on this machine, and prints the table of
// docs/measurements/examples.md. It is to be run in the root of the repository:
//
//	go run ./bench/examples
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// names are the examples.
var names = []string{"mlp", "cnn", "gpt", "regression", "penalty"}

func main() {
	limit := flag.Duration("limit", 15*time.Minute, "longest time of a program")
	flag.Parse()
	dir, err := os.MkdirTemp("", "examples")
	if err == nil {
		err = table(dir, *limit)
	}
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
}

// table builds and runs all of them.
func table(dir string, limit time.Duration) error {
	if err := build(dir, "gomem", ".", "./examples/..."); err != nil {
		return err
	}
	if err := build(dir, "gomlx", "bench/gomlx", "./..."); err != nil {
		return err
	}
	fmt.Println("| example | with | lines | ms a step | processor ms a step | process MiB | said |")
	fmt.Println("|---|---|---:|---:|---:|---:|---|")
	for _, name := range names {
		for _, twin := range []struct{ with, cwd, source string }{
			{"gomem", ".", filepath.Join("examples", name, "main.go")},
			{"gomlx", "bench/gomlx", filepath.Join("bench/gomlx", name, "main.go")},
		} {
			text, err := os.ReadFile(twin.source)
			if err != nil {
				return err
			}
			program, err := filepath.Abs(filepath.Join(dir, twin.with, name))
			if err != nil {
				return err
			}
			r := run(program, twin.cwd, limit)
			fmt.Printf("| %s | %s | %d | %s | %s | %.0f | %s |\n", name, twin.with,
				lines(string(text)), r.step, r.processor(steps(name)), r.mebibytes, r.said)
		}
	}
	return nil
}

// build builds the programs of a module. GoMLX's Go backend is many times as fast with the
// compiler's experimental vectors; gomem needs none.
func build(dir, with, cwd, packages string) error {
	out, err := filepath.Abs(filepath.Join(dir, with))
	if err != nil {
		return err
	}
	if err := os.Mkdir(out, 0o777); err != nil {
		return err
	}
	c := exec.Command("go", "build", "-o", out+string(filepath.Separator), packages)
	c.Dir, c.Stderr = cwd, os.Stderr
	if with == "gomlx" {
		c.Env = append(os.Environ(), "GOEXPERIMENT=simd")
	}
	return c.Run()
}

// lines is the number of a program's lines that are neither blank nor comments only.
func lines(program string) (n int) {
	for line := range strings.Lines(program) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}

// result is what a program took and said.
type result struct {
	step, said string
	user       time.Duration
	mebibytes  float64
	finished   bool
}

// steps is how many steps of training an example takes.
func steps(name string) int {
	return map[string]int{"mlp": 450, "cnn": 90, "gpt": 1600, "regression": 540,
		"penalty": 360}[name]
}

// processor is the processor time of the whole program by its steps: planning or
// compiling, data and evaluation included.
func (r result) processor(steps int) string {
	if !r.finished {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.user.Seconds()*1e3/float64(steps))
}

// run runs a program, and reads what it says of its steps.
func run(program, cwd string, limit time.Duration) result {
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	c := exec.CommandContext(ctx, program)
	c.Dir = cwd
	out, err := c.CombinedOutput()
	r := result{step: "-", finished: err == nil}
	switch {
	case ctx.Err() != nil:
		r.said = fmt.Sprintf("not done within %v", limit)
	case err != nil:
		r.said = strings.TrimSpace(string(out))
	default:
		r.read(string(out))
	}
	if c.ProcessState != nil {
		r.user, r.mebibytes = c.ProcessState.UserTime(), resident(c.ProcessState)
	}
	return r
}

// read finds the median of the steps' times, and the last results.
func (r *result) read(out string) {
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "-> "); ok { // gomem's
			fields := strings.Fields(rest)
			if len(fields) > 1 {
				r.step = fields[1]
			}
		}
		if before, ok := strings.CutSuffix(line, " a step"); ok { // the twins'
			fields := strings.Fields(before)
			if d, err := time.ParseDuration(fields[len(fields)-1]); err == nil {
				r.step = fmt.Sprintf("%.2f", d.Seconds()*1e3)
			}
		}
		if _, rest, ok := strings.Cut(line, "held-out loss "); ok {
			r.said = "held-out loss " + rest
		} else if strings.HasPrefix(line, "accuracy") {
			r.said = line
		}
	}
}
