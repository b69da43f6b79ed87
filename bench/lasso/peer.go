package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gomem/gomem/distrib/strads"
)

//go:embed peer.py
var program string

// peer is scikit-learn in a process of its own, which has a design and fits it when it is asked.
type peer struct {
	process *exec.Cmd
	ask     io.WriteCloser
	answers *bufio.Scanner
	to      string // where it writes coefficients
	cols    int
}

// newPeer starts one, which reads the design from files in a directory.
func newPeer(ctx context.Context, python, dir string, d drawing, c *columns, y []float64) (*peer,
	error) {
	for name, x := range map[string]any{"value": c.value, "y": y, "row": c.row,
		"start": narrow(c.start)} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		out := bufio.NewWriter(f)
		if err := binary.Write(out, binary.LittleEndian, x); err != nil {
			return nil, err
		}
		if err := out.Flush(); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	p := &peer{to: filepath.Join(dir, "b"), cols: d.cols}
	p.process = exec.CommandContext(ctx, python, "-c", program, d.model(), dir,
		strconv.Itoa(d.rows), strconv.Itoa(d.cols))
	p.process.Env = append(os.Environ(), "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1")
	p.process.Stderr = os.Stderr
	var err error
	if p.ask, err = p.process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = bufio.NewScanner(out)
	if err := p.process.Start(); err != nil {
		return nil, err
	}
	return p, nil
}

func narrow(x []int) (y []int32) {
	for _, v := range x {
		y = append(y, int32(v))
	}
	return y
}

func (p *peer) close() {
	_ = p.ask.Close()
	_ = p.process.Wait()
}

// fit is how long a fit takes of a processor.
func (p *peer) fit(l1, tolerance float64) (time.Duration, error) {
	if _, err := fmt.Fprintf(p.ask, "%g %g\n", l1, tolerance); err != nil {
		return 0, err
	}
	if !p.answers.Scan() {
		return 0, fmt.Errorf("%s has no answer, and must have scikit-learn", p.process.Path)
	}
	seconds, err := strconv.ParseFloat(strings.TrimSpace(p.answers.Text()), 64)
	return time.Duration(seconds * float64(time.Second)), err
}

// tolerance is the largest of a ladder by which coefficients come to the gap.
func (p *peer) tolerance(of *strads.Problem, gap float64) (float64, error) {
	const steps, loosest = 24, 0.1
	for k := range steps {
		try := loosest / math.Pow(2, float64(k))
		if _, err := p.fit(of.L1, try); err != nil {
			return 0, err
		}
		at, err := p.point()
		if err != nil {
			return 0, err
		}
		seen, err := solve(of, at, strads.Stop{Gap: gap})
		if err != nil {
			return 0, err
		}
		nothing, err := solve(of, &strads.Point{B: make([]float64, p.cols)}, strads.Stop{})
		if err != nil {
			return 0, err
		}
		if seen.Gap <= gap*nothing.Objective {
			return try, nil
		}
	}
	return 0, fmt.Errorf("scikit-learn comes to no gap of %g", gap)
}

// point is what was fitted last.
func (p *peer) point() (*strads.Point, error) {
	b, err := os.ReadFile(p.to)
	if err != nil {
		return nil, err
	}
	if len(b) != 8*p.cols {
		return nil, fmt.Errorf("scikit-learn has %d bytes of %d coefficients", len(b), p.cols)
	}
	at := &strads.Point{B: make([]float64, p.cols)}
	for j := range at.B {
		at.B[j] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*j:]))
	}
	return at, nil
}
