package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/bench/internal/torch"
	"github.com/gomem/gomem/train"
)

//go:embed ddp.py
var script string

// runTorch trains by PyTorch, from the parameters that gomem begins with.
func runTorch(ctx context.Context, python string) (t trained, initial []gomem.Tensor, err error) {
	try := exec.CommandContext(ctx, python, "-c",
		"import torch.distributed as d; assert d.is_gloo_available()")
	if out, err := try.CombinedOutput(); err != nil {
		return t, nil, &torch.ErrMissing{Reason: fmt.Sprintf("%s has no PyTorch with gloo (%s)",
			python, strings.TrimSpace(string(out)))}
	}
	dir, err := os.MkdirTemp("", "gomem-ddp-")
	if err != nil {
		return t, nil, err
	}
	defer os.RemoveAll(dir)
	if initial, err = write(ctx, dir); err != nil {
		return t, nil, err
	}
	if err := replicate(ctx, python, dir); err != nil {
		return t, nil, err
	}
	t, err = read(dir, initial)
	return t, initial, err
}

// write leaves the task in a directory. It returns the parameters.
func write(ctx context.Context, dir string) ([]gomem.Tensor, error) {
	m, b, err := task(1)
	if err != nil {
		return nil, err
	}
	s, err := gomem.Compile(ctx, m.Graph, gomem.Options{Seed: seed}, train.Targets(m)...)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	initial, err := parameters(m, s)
	if err != nil {
		return nil, err
	}
	var all, x, y []byte
	var shapes [][]int
	for _, p := range initial {
		all, shapes = append(all, p.Data...), append(shapes, p.Type.Sizes())
	}
	for i := range steps * replicas {
		in := b.Train(i).Inputs
		x, y = append(x, in[0].Data...), append(y, in[1].Data...)
	}
	about, err := json.Marshal(map[string]any{"shapes": shapes, "batch": batch, "width": width,
		"rate": rate, "steps": steps})
	for name, data := range map[string][]byte{"parameters.bin": all, "x.bin": x, "y.bin": y,
		"shapes.json": about, "ddp.py": []byte(script)} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return initial, err
}

// replicate runs the workers.
func replicate(ctx context.Context, python, dir string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		return err
	}
	errs := make([]error, replicas)
	var wg sync.WaitGroup
	for rank := range replicas {
		c := exec.CommandContext(ctx, python, "ddp.py")
		c.Dir = dir
		c.Env = append(os.Environ(), fmt.Sprint("RANK=", rank), fmt.Sprint("WORLD_SIZE=", replicas),
			"MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port)
		wg.Go(func() {
			if out, err := c.CombinedOutput(); err != nil {
				errs[rank] = fmt.Errorf("PyTorch's worker %d: %w: %s", rank, err, out)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read is what the workers have left, of parameters like some.
func read(dir string, like []gomem.Tensor) (t trained, err error) {
	text, err := os.ReadFile(filepath.Join(dir, "times.json"))
	if err != nil {
		return t, err
	}
	var said struct {
		About   string
		Seconds []float64
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return t, err
	}
	var times []time.Duration
	for _, s := range said.Seconds {
		times = append(times, time.Duration(s*float64(time.Second)))
	}
	t.about, t.step = said.About, median(times)
	data, err := os.ReadFile(filepath.Join(dir, "trained.bin"))
	for _, p := range like {
		x := gomem.NewTensor(p.Type)
		data = data[copy(x.Data, data):]
		t.values = append(t.values, x)
	}
	return t, err
}
