package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomem/gomem/internal/command"
)

// Diagnose has the processes join as for a run, and says of each what was found.
func (c Cluster) Diagnose(ctx context.Context, f command.JobFlags, w command.World) (
	findings []command.Finding, err error) {
	job, err := c.Join(ctx, f, w, func(string) {})
	if err != nil {
		return nil, err
	}
	for _, n := range job.View.Nodes {
		findings = append(findings, command.Finding{Node: fmt.Sprint(n.ID), Check: "joins",
			OK: true, Detail: n.Addr})
	}
	return findings, errors.Join(job.Transport.Close(), job.Leave())
}
