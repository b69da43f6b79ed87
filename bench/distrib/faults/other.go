//go:build !linux

// Command faults does harm to jobs of gomem-cluster. It finds their processes as Linux has
// them, and does nothing elsewhere.
package main

import "fmt"

func main() { fmt.Println("faults: not measured: it needs Linux") }
