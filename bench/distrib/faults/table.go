//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// outcome is what became of a job.
type outcome struct {
	end   string
	pause time.Duration // the longest between two steps that were shown, or until the job's end
	named time.Duration // from the harm until a worker was named; 0: none was
	twice int           // steps that were shown, and were made again or are in no checkpoint
	back  int           // times that the newest checkpoint became an older one
	whole bool          // all three are in it at last
	said  string        // last
	lines string        // all that was said, and when
}

const heading = "| job | fault | scheme | the job | stands still, s | named, s | twice | " +
	"set back | three again | what is said last |\n|---|---|---|---|---:|---:|---:|---:|---:|---|\n"

// row is what became of a fault's tries.
func row(s scenario, scheme string, tries []outcome) string {
	var pauses, names []time.Duration
	ends := map[string]int{}
	twice, back, whole, said := 0, 0, 0, ""
	for _, o := range tries {
		ends[o.end]++
		pauses = append(pauses, o.pause)
		if o.named > 0 {
			names = append(names, o.named)
		}
		twice, back = max(twice, o.twice), back+o.back
		if o.whole {
			whole++
		}
		if said == "" || o.end != "goes on" {
			said = o.said
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %d | %d | %d | %s |\n", s.kind.name, s.name,
		scheme, counted(ends), spread(pauses), spread(names), twice, back, whole, said)
}

// counted is how often each thing was.
func counted(of map[string]int) string {
	var texts []string
	for text, n := range of {
		texts = append(texts, fmt.Sprintf("%d %s", n, text))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// spread is the median of times and the longest, in seconds.
func spread(all []time.Duration) string {
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	middle, last := all[len(all)/2].Seconds(), all[len(all)-1].Seconds()
	if len(all) == 1 {
		return fmt.Sprintf("%.1f", last)
	}
	return fmt.Sprintf("%.1f (%.1f)", middle, last)
}
