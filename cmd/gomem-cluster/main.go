package main

import (
	"context"
	"os"

	"github.com/gomem/gomem/internal/cluster"
	"github.com/gomem/gomem/internal/command"
)

func main() {
	jobs := cluster.New()
	ctx := command.UntilAsked(context.Background())
	os.Exit(command.Main(ctx, os.Args[1:], os.Stdout, os.Stderr, command.Extras{
		Name: "gomem-cluster", Cluster: jobs}))
}
