package graph

import (
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	for _, pc := range stack {
		pos, known := positions.Load(pc)
		if !known {
			pos = positionAt(pc)
			positions.Store(pc, pos)
		}
		if pos != "" {
			return pos.(string)
		}
	}
	return ""
}

// positions are the positions of the callers that were met, "" for those that are not model code.
// Every node asks for one, and there are only as many as there are calls in the program's text.
var positions sync.Map // of string, by uintptr

// positionAt is the position of a caller if it is model code, else "".
func positionAt(pc uintptr) string {
	f, _ := runtime.CallersFrames([]uintptr{pc}).Next()
	if internal(f.Function) || f.File == "" {
		return ""
	}
	dir, file := filepath.Split(f.File)
	return filepath.Join(filepath.Base(dir), file) + ":" + strconv.Itoa(f.Line)
}

func internal(function string) bool {
	for _, p := range internalFrames {
		if strings.HasPrefix(function, p) {
			return true
		}
	}
	return false
}
