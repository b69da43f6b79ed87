package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Built builds gomem-cluster, and calls a function with it and a directory; both are removed after.
func Built(ctx context.Context, do func(program, dir string) error) error {
	dir, err := os.MkdirTemp("", "gomem-lab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "gomem-cluster")
	build := exec.CommandContext(ctx, "go", "build", "-o", program,
		"github.com/gomem/gomem/cmd/gomem-cluster")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return do(program, dir)
}
