//go:build !linux

package main

import (
	"fmt"
	"io"
	"testing"
)

func namespacedFactors(t *testing.T, w io.Writer, quick bool) error {
	return namespaces(t, w, quick)
}

func namespaces(_ *testing.T, w io.Writer, _ bool) error {
	_, err := fmt.Fprintln(w, "There are no network namespaces here.")
	return err
}
