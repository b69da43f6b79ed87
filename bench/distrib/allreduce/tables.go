package main

import (
	"fmt"
	"io"
	"strings"
)

// heading begins a table.
func heading(w io.Writer, mbit int, steps bool) {
	names := []string{"workers", "MiB", "gloo, ms", "gomem, ms", "to gloo", "mTLS, ms", "to gloo"}
	switch {
	case steps:
		names = []string{"workers", "MiB", "computing, ms", "exchange", "alone, ms", "to links",
			"step, ms", "hidden"}
	case mbit > 0:
		names = []string{"workers", "MiB", "links, ms", "gloo, ms", "to links", "gomem, ms",
			"to links", "mTLS, ms", "to links"}
	}
	if mbit > 0 {
		fmt.Fprintf(w, "\n%d Mbit/s:\n", mbit)
	}
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(names, " | "),
		strings.Repeat("--:|", len(names)))
}

// mebi is bytes in MiB.
func mebi(size int) float64 { return float64(size) / (1 << 20) }

// alone measures all-reduces of a size.
func (s settings) alone(w io.Writer, n, size int, at place, crews []crew) error {
	a := ask{sum, size, at.count(n, size), 0}
	m, err := s.turns(crews, []ask{a, a, a})
	if err != nil {
		return err
	}
	if at.mbit == 0 {
		fmt.Fprintf(w, "| %d | %.4g | %.3g | %.3g | %.2f | %.3g | %.2f |\n", n, mebi(size), m[0],
			m[1], m[1]/m[0], m[2], m[2]/m[0])
		return nil
	}
	links := 1e3 * at.links(n, size)
	fmt.Fprintf(w, "| %d | %.4g | %.3g | %.3g | %.2f | %.3g | %.2f | %.3g | %.2f |\n", n,
		mebi(size), links, m[0], m[0]/links, m[1], m[1]/links, m[2], m[2]/links)
	return nil
}

// overlap measures steps whose gradients have a size: what is exchanged alone, and beside
// computing that takes as long as the links need.
func (s settings) overlap(w io.Writer, n, size int, at place, crews []crew) error {
	links := at.links(n, size)
	names := []string{"gloo", "ring", "ps"}
	var asks []ask
	for _, compute := range []float64{0, links} {
		for _, name := range names {
			asks = append(asks, ask{name, size, at.count(n, size), compute})
		}
	}
	from := []crew{crews[0], crews[1], crews[1]}
	m, err := s.turns(append(from, from...), asks)
	if err != nil {
		return err
	}
	for i, name := range names {
		alone, step := m[i], m[i+len(names)]
		compute := 1e3 * links
		fmt.Fprintf(w, "| %d | %.4g | %.3g | %s | %.3g | %.2f | %.3g | %.0f%% |\n", n, mebi(size),
			compute, name, alone, alone/compute, step,
			100*(compute+alone-step)/min(compute, alone))
	}
	return nil
}

// count is how many all-reduces of a size a round has.
func (p place) count(n, size int) int {
	if p.mbit > 0 {
		return min(max(int(1/p.links(n, size)), 2), 20)
	}
	return min(max(32<<20/size, 2), 50)
}
