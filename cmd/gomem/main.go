package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(untilSignal(context.Background()), os.Args[1:], os.Stdout, os.Stderr))
}
