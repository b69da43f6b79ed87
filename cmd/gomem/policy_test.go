package main

import (
	"testing"

	"github.com/gomem/gomem/compile"
)

// TestPoliciesAreDescribed: a policy cuts partitions, or there are words for what
// it does instead.
func TestPoliciesAreDescribed(t *testing.T) {
	for _, p := range compile.Policies() {
		if _, ok := uncut[p]; ok == p.Partitioned() {
			t.Errorf("%s: partitioned %t, described %t", p, p.Partitioned(), ok)
		}
	}
}
