package command

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/front/onnx"
	"github.com/gomem/gomem/graph"
	"github.com/gomem/gomem/graph/ops"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/internal/regular"
	"github.com/gomem/gomem/models"
	"github.com/gomem/gomem/nn"
)

// networks is the kind of models that are networks of ONNX's files: --model onnx:FILE.
const networks = "onnx"

// networkTexts are what --help says of the flags of networks, as in flagTexts.
const networkTexts = `
--axis
    onnx: the size of an axis of inputs that has none in the file, by its symbol, or of axis 0 of
    input x as x.0; it may be given more than once.
--output
    onnx: the output that the loss is of, where there are several.
--loss
    onnx: what is trained: cross-entropy, of classes along an output's last axis and labels; mse,
    the mean square; bce, binary cross-entropy of logits; the name of an output that is a loss
    itself; or none. plan needs none, and plans an evaluation then. gbt: squares, of labels
    that are numbers, or logistic, of two classes (default squares).
--target
    onnx: the array of targets, or labels, in the data (default target).
`

// kindName is the name of a model's kind.
func kindName(model string) string {
	if strings.HasPrefix(model, networks+":") {
		return networks
	}
	return model
}

// axes are sizes of axes by name, "batch=8,tokens=128". A flag that is there again adds to them.
type axes string

// UnmarshalText adds some.
func (a *axes) UnmarshalText(text []byte) error {
	all := a.sizes()
	for one := range strings.SplitSeq(string(text), ",") {
		i := strings.LastIndex(one, "=")
		var n count
		if i < 1 || n.UnmarshalText([]byte(one[i+1:])) != nil {
			return fmt.Errorf("%.60q: want the name of an axis and its size, such as "+
				"tokens=128", one)
		}
		if have, twice := all[one[:i]]; twice && have != int(n) {
			return fmt.Errorf("%.60q has two sizes", one[:i])
		}
		all[one[:i]] = int(n)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, fmt.Sprintf("%s=%d", name, all[name]))
	}
	*a = axes(strings.Join(list, ","))
	return nil
}

// sizes are the sizes by name.
func (a axes) sizes() map[string]int {
	all := map[string]int{}
	for one := range strings.SplitSeq(string(a), ",") {
		if i := strings.LastIndex(one, "="); i > 0 {
			all[one[:i]], _ = strconv.Atoi(one[i+1:])
		}
	}
	return all
}

// network is the network of a file, being made a model.
type network struct {
	*onnx.Net
	sum     string // the file's SHA-256
	flags   modelFlags
	in      []graph.Value
	target  graph.Value // of the loss; no value where it needs none
	classes int
}

// openNetwork reads the file of a model. sum is its SHA-256.
func openNetwork(f modelFlags) (n *onnx.Net, sum string, err error) {
	path := f.file()
	if path == "" {
		return nil, "", usagef("--model %s has no file: want --model onnx:FILE", f.Model)
	}
	for _, o := range []option{{"fine", f.Fine},
		{"size", f.sum == "" && f.Size != usualSize && f.Size != filepath.Base(path)}} {
		if o.given {
			return nil, "", usagef("--%s does nothing for --model onnx: leave one of them out",
				o.name)
		}
	}
	if sum, err = fileSum(path); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, bare(err))
	}
	if f.sum != "" && f.sum != sum {
		return nil, "", fmt.Errorf("%s is another file than that of the run: its SHA-256 begins "+
			"with %.12s, and that one's with %.12s", path, sum, f.sum)
	}
	// A run's weights have been trained, in 32 bits.
	n, err = onnx.Open(path, onnx.Options{Sizes: f.Axis.sizes(), Batch: int(f.Batch),
		Untrained: f.evaluates() && f.sum == ""})
	if _, open := errors.AsType[*onnx.UnboundError](err); open {
		err = usagef("%w: give --axis NAME=N for each, or --batch N for those of examples", err)
	}
	return n, sum, err
}

// fileSum is the SHA-256 of a file.
func fileSum(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// file is the file of a network; "" of other models.
func (f modelFlags) file() string {
	_, path, _ := strings.Cut(f.Model, ":")
	return path
}

// buildNetwork makes a model of a file, for checkpoints with what it was made of.
func buildNetwork(f modelFlags) (*models.Model, map[string]string, error) {
	n, m, err := newNetwork(f)
	if err != nil {
		return nil, nil, err
	}
	numbers := map[string]string{"sha256": n.sum}
	for name, value := range map[string]string{"batch": inWords(f.Batch), "axis": string(f.Axis),
		"output": f.Output, "loss": f.Loss, "target": f.Target} {
		if value != "" {
			numbers[name] = value
		}
	}
	return m, numbers, nil
}

// newNetwork makes a model of a file: with a loss one that trains, else its outputs alone.
func newNetwork(f modelFlags) (*network, *models.Model, error) {
	file, sum, err := openNetwork(f)
	if err != nil {
		return nil, nil, err
	}
	m := nn.NewModel()
	x := &network{Net: file, sum: sum, flags: f, in: file.Inputs(m)}
	if err := x.fits(); err != nil {
		return nil, nil, err
	}
	if f.evaluates() {
		m.Output(file.Apply(m.Evaluation(), x.in...)...)
	} else if err := x.learn(m); err != nil {
		return nil, nil, err
	}
	m.Values = file.Load
	if err := m.Err(); err != nil {
		return nil, nil, err
	}
	size := filepath.Base(f.file())
	if f.sum != "" { // of a checkpoint, since when the file may have moved
		size = f.Size
	}
	return x, &models.Model{Model: *m, Name: networks, Size: size, Unit: "example",
		Classes: x.classes}, nil
}

// evaluates reports whether a network's outputs are all that is asked for.
func (f modelFlags) evaluates() bool { return f.Loss == "" || f.Loss == "none" }

// trainable refuses a network without a loss.
func (f modelFlags) trainable() error {
	if kindName(f.Model) == networks && f.evaluates() {
		return usagef("--loss is missing, which %s is trained by: want %s, or the name of an "+
			"output that is a loss", f.file(), either(losses))
	}
	return nil
}

// fits refuses flags that the network has no use for.
func (x *network) fits() error {
	if b := int(x.flags.Batch); b > 0 && !slices.ContainsFunc(x.in, func(v graph.Value) bool {
		return v.Type().Rank() > 0 && v.Type().Size(0) == b
	}) {
		return usagef("--batch %d does nothing: axis 0 of the inputs has a size in the file, or "+
			"by --axis", b)
	}
	if o := x.flags.Output; o != "" && !slices.Contains(x.Outputs(), o) {
		return usagef("--output %s: there is none of the name: want %s", o, either(x.Outputs()))
	}
	t := x.flags.Target
	if t != "" && x.flags.evaluates() {
		return usagef("--target does nothing without --loss: leave it out")
	}
	if slices.Contains(losses, x.flags.Loss) && slices.ContainsFunc(x.in, func(v graph.Value) bool {
		return v.Node.Name == cmp.Or(t, usualTarget)
	}) {
		return usagef("--target %s is an input of the network: want another name",
			cmp.Or(t, usualTarget))
	}
	return nil
}

// losses are those that are not an output of the file.
var losses = []string{"cross-entropy", "mse", "bce"}

// usualTarget is the array with targets where --target does not say another.
const usualTarget = "target"

// learn adds a training step and an evaluation.
func (x *network) learn(m *nn.Model) error {
	loss, metrics, err := x.loss(m, m.Training())
	if err != nil {
		return err
	}
	x.flags.training().Minimize(m, loss, nn.Adam{}, nn.MinimizeOptions{Metrics: metrics})
	if loss, metrics, err = x.loss(m, m.Evaluation()); err != nil {
		return err
	}
	m.Evaluate(loss, metrics...)
	return nil
}

// loss is that of a pass.
func (x *network) loss(m *nn.Model, c *nn.Ctx) (loss graph.Value, metrics []nn.Metric, err error) {
	outputs := x.Apply(c, x.in...)
	if err := m.Graph.Err(); err != nil {
		return loss, nil, err
	}
	if !slices.Contains(losses, x.flags.Loss) {
		loss, err = x.own(outputs)
		return loss, nil, err
	}
	y, err := x.output(outputs)
	if err != nil {
		return loss, nil, err
	}
	if y = ops.Cast(y, graph.F32); !y.Valid() {
		return loss, nil, m.Graph.Err()
	}
	t := y.Type()
	kind := tensor.Named(graph.F32, t.Shape...)
	if x.flags.Loss == "cross-entropy" {
		if t.Rank() < 2 {
			return loss, nil, usagef("--loss cross-entropy: the output is %s: want the logits of "+
				"classes along its last axis", t)
		}
		x.classes, kind = t.Size(-1), tensor.Named(graph.I32, t.Shape[:t.Rank()-1]...)
	}
	if !x.target.Valid() {
		x.target = m.InputOf(cmp.Or(x.flags.Target, usualTarget), kind)
	}
	switch x.flags.Loss {
	case "mse":
		return nn.MSE(y, x.target), nil, nil
	case "bce":
		return nn.BinaryCrossEntropy(y, x.target), nil, nil
	}
	return nn.CrossEntropy(y, x.target), []nn.Metric{nn.Accuracy(y, x.target)}, nil
}

// output is what the loss is of.
func (x *network) output(outputs []graph.Value) (v graph.Value, err error) {
	names := x.Outputs()
	if len(names) > 1 && x.flags.Output == "" {
		return v, usagef("--output is missing: the network has %s", either(names))
	}
	return outputs[max(0, slices.Index(names, x.flags.Output))], nil
}

// own is the loss that is an output of the file.
func (x *network) own(outputs []graph.Value) (v graph.Value, err error) {
	name := x.flags.Loss
	i := slices.Index(x.Outputs(), name)
	switch {
	case i < 0:
		return v, usagef("--loss %s: want %s, none, or the name of an output that is a loss: %s",
			name, strings.Join(losses, ", "), either(x.Outputs()))
	case x.flags.Target != "" || x.flags.Output != "":
		return v, usagef("--target and --output do nothing with --loss %s, which is an output of "+
			"the network: leave them out", name)
	}
	if t := outputs[i].Type(); t.Elems() != 1 || !t.DType.Floating() {
		return v, usagef("--loss %s: the output is %s: want one floating-point number", name, t)
	}
	return ops.Reshape(ops.Cast(outputs[i], graph.F32)), nil
}
