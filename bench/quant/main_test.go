package main

import (
	"context"
	"strings"
	"testing"
)

// TestTable: a row for every format, or for one, and a line for what there is not.
func TestTable(t *testing.T) {
	for _, c := range []struct {
		args   []string
		rows   int
		errors int // rows about products
		said   string
	}{
		{[]string{"-elements", "1024", "-rounds", "1", "-rows", "16"}, 7, 4, ""},
		{[]string{"-elements", "1024", "-rounds", "1", "-format", "q4_k", "-rows", "16"}, 1, 1, ""},
		{[]string{"-elements", "100", "-rounds", "1"}, 0, 0, "want a multiple of 32"},
		{[]string{"-format", "q3"}, 0, 0, "want one of q8_0"},
		{[]string{"-rounds", "0"}, 0, 0, "-rounds"},
		{[]string{"-rows", "0"}, 0, 0, "-rows 0: want 1 or more"},
	} {
		var w strings.Builder
		err := run(context.Background(), c.args, &w)
		if c.said == "" && err != nil || c.said != "" && (err == nil ||
			!strings.Contains(err.Error(), c.said)) {
			t.Errorf("%s: %v", c.args, err)
		}
		if c.said == "" && strings.Count(w.String(), "\n| ") != 2*c.rows+4+1+c.errors {
			t.Errorf("%s: %s", c.args, &w)
		}
	}
}
