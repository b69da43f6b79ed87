package models

import (
	"fmt"

	"github.com/gomem/gomem/nn"
)

// newModel is a model with its inputs but for data, and without objectives.
func newModel(name, size string, of Domain, classes int, schedule Schedule, fine bool) *Model {
	m := &Model{Model: *nn.NewModel(), Name: name, Size: size, Domain: of, Unit: of.unit(),
		Classes: classes}
	m.Schedule, m.Unnamed, m.Fine = schedule, true, fine
	return m
}

// done is the model, or what is wrong with its graph.
func (m *Model) done() (*Model, error) {
	if err := m.Graph.Err(); err != nil {
		return nil, fmt.Errorf("model %s of size %s: %w", m.Name, m.Size, err)
	}
	return m, nil
}

// replicaBudget is the memory that a size is meant for, in bytes: that of the
// thesis' machine for base (12 GiB device, 64 GiB host), and 1/64 and 1/512 of it.
func replicaBudget(size string) (device, host int64) {
	const device0, host0 = 12 << 30, 64 << 30
	switch size {
	case "base":
		return device0, host0
	case "s64":
		return device0 / 64, host0 / 64
	default:
		return device0 / 512, host0 / 512
	}
}
