// Package gauge has what the benchmarks share: the machine's name, its load,
// and the median.
package gauge

import (
	"math"
	"os"
	"slices"
	"strings"

	"github.com/gomem/gomem/planner/machine/calibrate"
)

// Processor is the processor's name, where the system tells.
func Processor() string { return calibrate.Processor() }

// Load is the load average of the minute before, "" where the system does not
// tell.
func Load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	minute, _, _ := strings.Cut(string(data), " ")
	return minute
}

// Median is the middle, or the mean of the two in the middle; NaN of nothing.
func Median(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
