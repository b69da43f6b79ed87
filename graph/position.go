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
}

// position is the file and line of the nearest caller that is model code.
func (g *Graph) position() string {
	if g.pos != "" {
		return g.pos
	}
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
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
