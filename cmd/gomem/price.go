package main

import (
	"slices"
	"strings"
	"time"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/machine"
	"github.com/gomem/gomem/simulate"
)

// modelOf prices what a model's training step does, on the machine that a device
// stands for; nil if that is not known. What is planned counts, so that all plans of
// a model are priced alike.
func modelOf(device string, b *built, vanilla planned) (machine.Model, error) {
	profile, err := profileOf(device)
	if profile == nil || err != nil {
		return nil, err
	}
	var nodes []*graph.Node
	for id, live := range vanilla.Results[0].Program.Live {
		if n := vanilla.Graph.Nodes()[id]; live && n.Executes() {
			nodes = append(nodes, n)
		}
	}
	return profile.For(b.model.Name, nodes), nil
}

// simulated is what the names of devices begin with that are known by their prices.
const simulated = "sim:"

// profileOf is the profile of a device that is one; nil for others.
func profileOf(device string) (*machine.Profile, error) {
	name, ok := strings.CutPrefix(device, simulated)
	if !ok && slices.Contains(gomem.Devices(), device) {
		return nil, nil
	}
	if !ok {
		return nil, usagef("--device %q: want %s or %sNAME", device,
			strings.Join(gomem.Devices(), ", "), simulated)
	}
	p, err := machine.Named(name)
	if err != nil {
		return nil, usagef("--device %s: %w", device, err)
	}
	return p, nil
}

// stepTime is how long a training step takes by prices: every objective as often as
// it is executed.
func stepTime(b *built, p planned, m machine.Model) time.Duration {
	var total time.Duration
	for i, o := range b.model.Objectives {
		t := simulate.Simulate(p.Results[i].Plan, p.Graph, m)
		total += time.Duration(o.Times) * t.Step
	}
	return total
}
