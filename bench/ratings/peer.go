package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed peer.py
var source string

// libmf are the runs of LIBMF.
func libmf(ctx context.Context, python, dir string, rank, threads int, train, held []element) (
	all []run, err error) {
	for name, list := range map[string][]element{"train": train, "held": held} {
		b, err := binary.Append(nil, binary.LittleEndian, list)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	task, err := json.Marshal(map[string]any{"dir": dir, "rank": rank, "threads": threads,
		"passes": passes, "rates": []float64{0.05, 0.1},
		"lambda": lambda})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-c", source)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(task), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", python, err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var r struct {
			run
			Missing string
		}
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case r.Missing != "":
			return nil, fmt.Errorf("nothing to compare with: %s", r.Missing)
		}
		all = append(all, r.run)
	}
}
