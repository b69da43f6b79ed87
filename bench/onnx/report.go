package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/gomem/gomem/bench/internal/gauge"
)

// heading says where it was compared, and begins the table.
func heading(w io.Writer, p *peer) {
	beside, columns := "", []string{"network", "nodes in the file", "of the graph", "gradients",
		"elements", "outputs differ", "gradients differ", "most that of",
		"vanilla MiB", "planned MiB"}
	if p != nil {
		beside = fmt.Sprintf(", beside %s, load %s", p.About, gauge.Load())
		for _, threads := range threads {
			columns = append(columns, fmt.Sprintf("ms, %d threads", threads),
				"onnxruntime's", "ratio")
		}
	}
	fmt.Fprintf(w, "%s on %s%s\n\n", runtime.Version(), gauge.Processor(), beside)
	row(w, columns...)
	fmt.Fprintf(w, "|---|%s\n", strings.Repeat("---:|", len(columns)-1))
}

func row(w io.Writer, cells ...string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }

func (r result) cells() []string {
	planned := mib(r.planned)
	if !r.third {
		planned += " (least)"
	}
	return []string{r.name, fmt.Sprint(r.file), fmt.Sprint(r.nodes), fmt.Sprint(r.grads),
		fmt.Sprint(r.weights), flagged(r.output, mostOutput), flagged(r.gradient, mostGradient),
		"`" + r.worst + "`", mib(r.vanilla), planned}
}

// flagged is a difference, bold where it is too large.
func flagged(x, most float64) string {
	if x < most {
		return fmt.Sprintf("%.0e", x)
	}
	return fmt.Sprintf("**%.0e**", x)
}

func mib(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }
