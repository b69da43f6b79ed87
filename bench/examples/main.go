// Examples runs the programs of examples/ and their twins of bench/gomlx, which do the same
// with GoMLX, one after the other on this machine, and prints the table of
// docs/measurements/examples.md. It is to be run in the root of the repository:
//
//	go run ./bench/examples
package main

import (
	"context"
	"encoding/json"
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
				lines(string(text)), r.step, r.processor(steps(name, twin.with)), r.mebibytes,
				r.said)
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
	args := []string{"build", "-o", out + string(filepath.Separator)}
	env := os.Environ()
	if with == "gomlx" {
		overlay, err := shortened(dir)
		if err != nil {
			return err
		}
		args, env = append(args, "-overlay", overlay), append(env, "GOEXPERIMENT=simd")
	}
	c := exec.Command("go", append(args, packages)...)
	c.Dir, c.Stderr, c.Env = cwd, os.Stderr, env
	return c.Run()
}

// shorter are the twins that would take too long, with what makes them end earlier. Their
// times a step are the same; what they have learnt by then is not compared.
var shorter = map[string]struct {
	from, to string
	steps    int
}{
	"cnn": {"batches(2880, 1)", "batches(640, 1)", 20},
	"gpt": {"batch, steps = 16, 1600", "batch, steps = 16, 100", 100},
}

// shortened writes an overlay for the compiler, of twins that take fewer steps.
func shortened(dir string) (string, error) {
	files := map[string]string{}
	for name, s := range shorter {
		source, err := filepath.Abs(filepath.Join("bench/gomlx", name, "main.go"))
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(source)
		if err != nil {
			return "", err
		}
		if !strings.Contains(string(text), s.from) {
			return "", fmt.Errorf("%s has no %q", source, s.from)
		}
		files[source] = filepath.Join(dir, name+".go")
		brief := strings.Replace(string(text), s.from, s.to, 1)
		if err := os.WriteFile(files[source], []byte(brief), 0o666); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, text, 0o666)
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

// steps is how many steps of training a program takes.
func steps(name, with string) int {
	if s, ok := shorter[name]; ok && with == "gomlx" {
		return s.steps
	}
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
	c.Dir, c.Env = cwd, os.Environ()
	if strings.HasSuffix(program, filepath.Join("gomlx", "gpt")) {
		// in parallel it waits for itself forever on two cores
		c.Env = append(c.Env, "GOMLX_BACKEND=go:ops_sequential")
	}
	out, err := c.CombinedOutput()
	r := result{step: "-", finished: err == nil}
	switch {
	case ctx.Err() != nil:
		r.said = fmt.Sprintf("not done within %v", limit)
	case err != nil && len(out) == 0:
		r.said = err.Error()
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
