package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/internal/grid"
	"github.com/gomem/gomem/planner/machine"
	"github.com/gomem/gomem/planner/machine/calibrate"
)

// devicesCmd is gomem devices.
type devicesCmd struct {
	Calibrate bool   `help:"Measure this machine again."`
	Profile   string `placeholder:"NAME" xor:"form"`
	JSON      bool   `name:"json" xor:"form" help:"Print a JSON array. Sizes are bytes."`
}

// Help is the long help.
func (devicesCmd) Help() string {
	return `Lists what models can run on, and what plans weigh time by: the rates at
which a device computes and copies. Those of cpu and of GPUs are measured once and
kept; again if the machine was busy then, or a run disagrees by more than twice.
Those of simulated devices are profiles, built in or read from a file.`
}

func (devicesCmd) examples() string {
	return `
  gomem devices
  gomem devices --json
  gomem devices --calibrate                      when the machine has changed
  gomem devices --profile cpu                    for --device sim:FILE.json elsewhere
`
}

// deviceInfo describes a device.
type deviceInfo struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Threads     int              `json:"threads"`
	Memory      int64            `json:"memory_bytes"` // 0: unknown, or none is needed
	Kappa       float64          `json:"kappa,omitempty"`
	Profile     *machine.Profile `json:"profile,omitempty"` // what it is priced by
	GPU         *gomem.GPUInfo   `json:"gpu,omitempty"`
	Why         string           `json:"why_not,omitempty"` // it cannot be used
	// Link is how fast a GPU copies.
	Link *calibrate.Link `json:"link,omitempty"`
	// Measured is when, and Kept in which file that is; of cpu and GPUs.
	Measured *time.Time `json:"measured,omitempty"`
	Busy     bool       `json:"busy,omitempty"` // the machine was, so it is measured again
	Kept     string     `json:"kept,omitempty"`
}

// Run lists the devices.
func (c *devicesCmd) Run(ctx context.Context, e *env) error {
	list, err := c.list(ctx, e.stderr)
	if err != nil {
		return err
	}
	switch {
	case c.Profile != "":
		return c.profile(e.stdout, list)
	case c.JSON:
		return json.NewEncoder(e.stdout).Encode(list)
	}
	printDevices(e.stdout, list)
	printGPUs(e.stdout, list)
	printRates(e.stdout, list)
	fmt.Fprintf(e.stdout, "\ncpu was measured on %s", list[0].Measured.Format(time.DateTime))
	if list[0].Busy {
		fmt.Fprint(e.stdout, ", while it was busy, and will be again")
	}
	if list[0].Kept == "" {
		fmt.Fprint(e.stdout, ", which could not be kept")
	}
	fmt.Fprintln(e.stdout, ".")
	return nil
}

// list describes the devices, this machine first.
func (c *devicesCmd) list(ctx context.Context, w io.Writer) ([]deviceInfo, error) {
	defer notice(w, "gomem: measuring this machine")()
	m, err := calibrate.Open(ctx, calibrate.Options{Renew: c.Calibrate})
	if err != nil {
		return nil, err
	}
	when := m.When()
	here := deviceInfo{Name: gomem.CPU, Description: "this machine's processor",
		Threads: runtime.GOMAXPROCS(0), Memory: machineMemory(), Profile: m.Local().Profile,
		Measured: &when, Busy: m.Busy()}
	if path, err := m.Cache(); err == nil {
		here.Kept = path
	}
	list := []deviceInfo{here}
	for _, name := range gomem.Devices()[1:] {
		d := deviceInfo{Name: name, Description: "computes nothing, counts memory"}
		if d.Profile, err = gomem.Simulated(name); err != nil {
			return nil, err
		}
		if d.Profile != nil {
			d.Description = d.Profile.About
		}
		list = append(list, d)
	}
	list = append(list, gpus(ctx, c.Calibrate)...)
	for i, d := range list {
		if d.Profile != nil {
			list[i].Kappa = d.Profile.For("", nil).Kappa()
		}
	}
	return list, nil
}

// gpus describes the machine's NVIDIA GPUs, measured, or, if there are none, why.
func gpus(ctx context.Context, renew bool) []deviceInfo {
	found, err := gomem.GPUs()
	if err != nil {
		return []deviceInfo{{Name: gomem.CUDA, Description: "NVIDIA GPU", Why: err.Error()}}
	}
	var list []deviceInfo
	for i, g := range found {
		name := gomem.CUDA
		if i > 0 {
			name = fmt.Sprintf("%s:%d", gomem.CUDA, i)
		}
		d := deviceInfo{Name: name, Description: g.Name, Memory: g.Memory, GPU: &g, Why: g.Why}
		if g.Why == "" {
			d.measure(ctx, i, renew)
		}
		list = append(list, d)
	}
	return list
}

// measure adds what a GPU was measured to do, or why it cannot be.
func (d *deviceInfo) measure(ctx context.Context, number int, renew bool) {
	m, err := calibrate.OpenGPU(ctx, number, calibrate.Options{Renew: renew})
	if err != nil {
		d.Why = err.Error()
		return
	}
	when, link := m.When(), m.Link()
	d.Busy = m.Busy()
	d.Profile, d.Link, d.Measured = m.Local().Profile, &link, &when
	if path, err := m.Cache(); err == nil {
		d.Kept = path
	}
}

// printGPUs writes what drives GPUs, and why one cannot be used.
func printGPUs(w io.Writer, list []deviceInfo) {
	for _, d := range list {
		line := ""
		if g := d.GPU; g != nil {
			line = fmt.Sprintf("%s at %s: compute capability %s, %d multiprocessors, "+
				"%d copy engines, %s free; driver of %s; %s; %s; %s. ", d.Name, g.Bus,
				g.Capability, g.Units, g.CopyEngines, size(g.Free), g.Driver,
				cmp.Or(g.Compiler, "no NVRTC"),
				products(g), g.Convolutions)
		}
		if l := d.Link; l != nil {
			line += fmt.Sprintf("Copies %s GB/s in, %s out, %s each way at once, measured on %s. ",
				figures(l.In/1e9), figures(l.Out/1e9), figures(l.Both/1e9),
				d.Measured.Format(time.DateTime))
		}
		if d.Why != "" {
			line += fmt.Sprintf("%s cannot be used: %s.", d.Name, d.Why)
		}
		if line != "" {
			fmt.Fprintf(w, "\n%s\n", grid.Wrap(line, 80))
		}
	}
}

// products says which library multiplies matrices, and where it is.
func products(g *gomem.GPUInfo) string {
	if g.Products == "" {
		return "no cuBLAS"
	}
	return fmt.Sprintf("%s at %s", g.Products, g.ProductsFile)
}

// profile writes the one that was asked for.
func (c *devicesCmd) profile(w io.Writer, list []deviceInfo) error {
	var names []string
	for _, d := range list {
		if d.Profile == nil {
			continue
		}
		if name := strings.TrimPrefix(d.Name, gomem.Sim); name == c.Profile || d.Name == c.Profile {
			return d.Profile.WriteJSON(w)
		}
		names = append(names, d.Name)
	}
	return usagef("--profile %q: want one of %s", c.Profile, strings.Join(names, ", "))
}

func printDevices(w io.Writer, list []deviceInfo) {
	t := grid.New(3, 4)
	t.AppendHeader(table.Row{"device", "what it is", "threads", "memory"})
	for _, d := range list {
		row := table.Row{d.Name, d.Description, "-", "-"}
		if d.Threads > 0 {
			row[2] = d.Threads
		}
		if d.Memory > 0 {
			row[3] = size(d.Memory)
		}
		t.AppendRow(row)
	}
	printTable(w, t)
}

// printRates writes what devices are priced by, in GFLOP/s and GB/s.
func printRates(w io.Writer, list []deviceInfo) {
	fmt.Fprintln(w, "\nWhat plans weigh time by (GB are 1e9 bytes):")
	t := grid.New(2, 3, 4, 5, 6, 7)
	t.AppendHeader(table.Row{"device", "GFLOP/s", "GB/s", "in GB/s", "out GB/s", "host GB/s", "κ"})
	for _, d := range list {
		if p := d.Profile; p != nil {
			t.AppendRow(table.Row{d.Name, figures(p.Device.FLOPs / 1e9),
				figures(p.Device.Bytes / 1e9), figures(p.In / 1e9), figures(p.Out / 1e9),
				figures(p.Host.Bytes / 1e9), figures(d.Kappa)})
		}
	}
	printTable(w, t)
}
