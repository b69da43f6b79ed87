//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// settled is how long a server is left to itself before it is asked what it takes.
const settled = 5 * time.Second

// room is what one server takes for a job of three nodes: of memory beside what a node
// without one takes, and of the temporary directory. In bytes.
func room(s *scene) (memory, disk int64, err error) {
	before := os.Getenv("TMPDIR")
	defer os.Setenv("TMPDIR", before)
	if err := os.Setenv("TMPDIR", s.dir); err != nil {
		return 0, 0, err
	}
	if err := s.cast(3, 1, false); err != nil {
		return 0, 0, err
	}
	time.Sleep(settled)
	with, err := resident(s.nodes[0])
	if err != nil {
		return 0, 0, err
	}
	without, err := resident(s.nodes[1])
	if err != nil {
		return 0, 0, err
	}
	disk, err = stored(s.dir)
	return with - without, disk, err
}

// resident is the memory that a process has, as ps knows it.
func resident(p *process) (int64, error) {
	out, err := exec.Command("ps", "-o", "rss=", "-p", fmt.Sprint(p.cmd.Process.Pid)).Output()
	if err != nil {
		return 0, err
	}
	kib, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	return kib << 10, err
}

// stored is the size of all files below a directory.
func stored(dir string) (total int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}

// reportRoom prints what a server takes.
func reportRoom() error {
	dir, err := os.MkdirTemp("", "gomem-bench-control-")
	if err != nil {
		return err
	}
	s := &scene{dir: dir}
	defer s.end()
	memory, disk, err := room(s)
	if err != nil {
		return fmt.Errorf("what a server takes: %w", err)
	}
	fmt.Printf("One server takes %.0f MiB of memory and %.0f MiB of the temporary directory.\n\n",
		float64(memory)/(1<<20), float64(disk)/(1<<20))
	return nil
}
