package graph

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// internalFrames are the packages whose frames are not the model's.
var internalFrames = []string{
	"github.com/gomem/gomem/graph.",
	"github.com/gomem/gomem/graph/ops.",
	"github.com/gomem/gomem/graph/autodiff.",
	"github.com/gomem/gomem/nn.",
}

// Position is the model's line that makes nodes now: "dir/file.go:12".
func (g *Graph) Position() string { return g.position() }

// position is the file and line of the nearest caller that is model code: as a
// rule a few frames away, which are cheaper to find than all.
func (g *Graph) position() string {
	if g.pos != "" {
		return g.pos
	}
	var pcs [16]uintptr
	for _, depth := range []int{len(pcs) / 2, len(pcs)} {
		n := runtime.Callers(3, pcs[:depth])
		if pos := outside(pcs[:n]); pos != "" || n < depth {
			return pos
		}
	}
	return ""
}

// outside is the first position of a stack that is model code, or "".
func outside(stack []uintptr) string {
	frames := runtime.CallersFrames(stack)
	for {
		f, more := frames.Next()
		if !internal(f.Function) && f.File != "" {
			dir, file := filepath.Split(f.File)
			return filepath.Join(filepath.Base(dir), file) + ":" + strconv.Itoa(f.Line)
		}
		if !more {
			return ""
		}
	}
}

func internal(function string) bool {
	for _, p := range internalFrames {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}
