package command

import (
	"fmt"
	"strings"

	"github.com/gomem/gomem/models"
)

// factored is a variable of which workers exchange factors, and the bytes that one of them
// sends of an update, and that it would send of the whole.
type factored struct {
	Variable string `json:"variable"`
	Bytes    int64  `json:"bytes"`
	Dense    int64  `json:"dense_bytes"`
}

// factoredOf are the variables of which workers exchange factors. What another variable has
// sent already is none of a variable's bytes.
func factoredOf(m *models.Model) (list []factored) {
	for _, o := range m.Objectives {
		for _, w := range o.Ways {
			if w.ByFactors {
				list = append(list, factored{w.Parameter.Node.Name, w.Factors, w.Dense})
			}
		}
	}
	return list
}

// mostNamed is how many variables a line names.
const mostNamed = 8

// factoredFact says which variables go as factors; nothing if none does.
func factoredFact(list []factored) string {
	if list == nil {
		return ""
	}
	var bytes, dense int64
	var names []string
	for i, f := range list {
		bytes, dense = bytes+f.Bytes, dense+f.Dense
		if i < mostNamed {
			names = append(names, fmt.Sprintf("%s %s for %s", f.Variable, size(f.Bytes),
				size(f.Dense)))
		}
	}
	if more := len(list) - mostNamed; more > 0 {
		names = append(names, fmt.Sprintf("%d more (see --json)", more))
	}
	return fmt.Sprintf("a worker's of a step are %s for %s: %s", size(bytes), size(dense),
		strings.Join(names, ", "))
}
