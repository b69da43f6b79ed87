package command

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/gomem/gomem/models"
)

// adopt takes from the checkpoint of a run that is resumed what the command line leaves open:
// the model and its sizes, seed, learning rate, data and length of the run. What it does say
// has to be what the checkpoint says. Nothing but the checkpoint is read for that.
func (c *trainCmd) adopt(given map[string]bool) error {
	if c.Resume == "" {
		return nil
	}
	x, err := openCheckpoint(c.Resume)
	if err != nil {
		return err
	}
	if x.public != nil {
		return x.unusable("it is a public one, with no optimizer to go on with: begin a run "+
			"with --init %s", c.Resume)
	}
	run, err := x.run()
	if err != nil {
		return err
	}
	if err := c.agree(given, x, run); err != nil {
		return err
	}
	if kindName(c.Model) == networks { // the file may have moved
		run.Model = c.Model
	}
	c.modelFlags, c.rateFlags, c.Seed = run.modelFlags, run.rateFlags, run.Seed
	c.past = past{&x}
	c.Data = cmp.Or(c.Data, run.Data)
	if c.EvalData == "" && c.EvalShare == 0 {
		c.EvalData, c.EvalShare = run.EvalData, run.EvalShare
	}
	if c.Steps == 0 && c.Epochs == 0 {
		c.Steps, c.Epochs = run.Steps, run.Epochs
	}
	if !given["data"] && c.Steps > 0 && int(c.Steps) <= x.Step {
		return x.unusable("is at step %d already, the run is to reach %d: ask for more steps",
			x.Step, c.Steps)
	}
	return nil
}

// adoptTables takes from a directory of snapshots what the command line leaves open, if it is to go
// on from one. What it does say must be what the directory says.
func (c *trainCmd) adoptTables(given map[string]bool) error {
	if c.Resume == "" {
		return nil
	}
	run, ok, err := tablesOf(c.Resume)
	if err != nil || !ok {
		if err == nil && isShallow(c.Model) && given["model"] {
			err = fmt.Errorf("%s: the directory has no snapshots of --model %s", c.Resume, c.Model)
		}
		return err
	}
	for _, f := range []struct {
		name       string
		have, kept any
	}{
		{"model", c.Model, run.Model}, {"data", string(c.Data), run.Data},
		{"eval-data", string(c.EvalData), run.EvalData}, {"seed", c.Seed, run.Seed},
		{"lr", float64(c.LR), run.LR}, {"factors", int(c.Factors), run.Factors},
		{"lambda", float64(c.Lambda), run.Lambda},
	} {
		if given[f.name] && f.have != f.kept {
			kept := fmt.Sprintf("--%s %v", f.name, f.kept)
			if reflect.ValueOf(f.kept).IsZero() && f.name != "seed" {
				kept = "no --" + f.name // and what is usual
			}
			return fmt.Errorf("%s: the run there has %s, not %v", c.Resume, kept, f.have)
		}
	}
	c.Model, c.Data, c.EvalData = run.Model, location(run.Data), location(run.EvalData)
	c.Seed, c.LR, c.Factors = run.Seed, positive(run.LR), count(run.Factors)
	c.Epochs = cmp.Or(c.Epochs, passes(run.Epochs))
	c.Lambda, c.Gap = positive(run.Lambda), cmp.Or(c.Gap, share(run.Gap))
	switch {
	case run.LDA != nil:
		return c.adoptLDA(*run.LDA)
	case run.Trees != nil:
		return c.treeFlags.adopt(c.Resume, *run.Trees)
	}
	return nil
}

// agree refuses flags that are not what the run was made with. Of its sub-words there were
// as many as were learnt, which are at most those asked for.
func (c *trainCmd) agree(given map[string]bool, x checkpointed, run *trainCmd) error {
	own := *c
	for _, name := range []string{"model", "size"} { // defaults are theirs
		if have, kept := own.settings()[name], run.settings()[name]; given[name] && have != kept {
			return x.other(name, have, kept)
		}
	}
	own.Model, own.Size = run.Model, run.Size
	if run.Vocabulary > 0 && own.Vocabulary > run.Vocabulary {
		own.Vocabulary = run.Vocabulary
	}
	if given["network"] {
		if _, err := publishedNetwork(c.Network); err != nil {
			return err
		}
	}
	have, kept := own.settings(), run.settings()
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if given[name] && have[name] != kept[name] && name == "network" {
			return x.unusable("was made with another network than that of %s: leave --network out",
				c.Network)
		}
		if given[name] && have[name] != kept[name] {
			return x.other(name, have[name], kept[name])
		}
	}
	return nil
}

// other is the error of a flag that is not what the run was made with.
func (x checkpointed) other(name, have, kept string) error {
	return x.unusable("was made with --%s %s, this run has --%s %s: leave the flag out", name,
		cmp.Or(kept, "(the default)"), name, cmp.Or(have, "(the default)"))
}

// settings are the flags that a run has to keep, by their names, in one form each; "" is the
// default.
func (c *trainCmd) settings() map[string]string {
	f := c.modelFlags
	s := map[string]string{
		"model": kindName(f.Model), "size": f.Size, "moe": cmp.Or(f.MoE, "dense"),
		"version": cmp.Or(f.Version, "v1.5"), "nets": f.Nets, "rnn": cmp.Or(f.RNN, "fused"),
		"fine": strconv.FormatBool(f.Fine), "stacked": strconv.FormatBool(f.Stacked),
		"optimizer": f.Optimizer, "blocks": strings.ReplaceAll(f.Blocks, " ", ""),
		"seed": strconv.FormatUint(c.Seed, 10), "schedule": c.Schedule,
		"eval-share": inWords(c.EvalShare), "lr": inWords(c.LR),
	}
	for name, word := range map[string]string{"axis": string(f.Axis), "output": f.Output,
		"loss": f.Loss, "target": f.Target, "network": f.kept(), "freeze": string(f.Freeze),
		"lora": string(f.LoRA), "store": f.Store} {
		s[name] = word
	}
	if f.Clip > 0 {
		s["clip"] = fmt.Sprint(float32(f.Clip))
	}
	for name, n := range map[string]count{"batch": f.Batch, "length": f.Length,
		"experts": f.Experts, "expert-hidden": f.ExpertHidden, "depth": f.Depth,
		"pixels": f.Pixels, "vocabulary": f.Vocabulary, "classes": f.Classes,
		"topics": f.Topics, "accumulate": f.Accumulate} {
		s[name] = inWords(n)
	}
	if c, err := models.NewTransformerConfig(f.Size); err == nil && f.Depth == 0 &&
		(f.Model == "moe" || f.Model == "transformer") { // of which checkpoints say nothing
		s["depth"] = strconv.Itoa(c.Layers)
	}
	if f.Dropout != nil {
		s["dropout"] = fmt.Sprint(float32(*f.Dropout))
	}
	if c.Warmup != nil {
		s["warmup"] = strconv.Itoa(int(*c.Warmup))
	}
	return s
}

// inWords is a number in words; "" of none.
func inWords[T count | share | positive | passes](n T) string {
	if n == 0 {
		return ""
	}
	if whole, ok := any(n).(count); ok { // without an exponent, with which no count is read
		return strconv.Itoa(int(whole))
	}
	return strconv.FormatFloat(float64(n), 'g', -1, 64)
}

// unpowered is a whole number as [inWords] has it, of checkpoints that have 1e+06 for a million.
func unpowered(text string) string {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > maxCount {
		return text
	}
	return strconv.Itoa(int(n))
}

// The labels of a checkpoint that say how its run was asked for, beside those of its
// settings: they are not compared.
const (
	labelSpec     = "spec"
	labelFile     = "file" // of a network
	labelEvalData = "eval-data"
	labelSteps    = "steps"
	labelEpochs   = "epochs"
)

// labels are what a checkpoint keeps for [trainCmd.adopt], and what a person calls the data.
func (c *trainCmd) labels(d dataset, spec string) map[string]string {
	own, all := c.settings(), map[string]string{"data": d.about, labelSpec: spec}
	for name, value := range map[string]string{labelEvalData: string(c.EvalData),
		labelFile: c.file(), labelSteps: inWords(c.Steps), labelEpochs: inWords(c.Epochs),
		"lr":       own["lr"],
		"schedule": own["schedule"], "warmup": own["warmup"]} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

// run is the command line that the run of a checkpoint could have been begun with.
func (x checkpointed) run() (*trainCmd, error) {
	c := &trainCmd{modelFlags: x.flags, Data: location(x.spec()), Seed: x.Seed}
	c.EvalData = location(x.Labels[labelEvalData])
	c.Optimizer, c.Schedule = x.Config["optimizer"], x.Labels["schedule"]
	var err error
	read := func(text, name string, to interface{ UnmarshalText([]byte) error }) {
		if text == "" || err != nil {
			return
		}
		if err = to.UnmarshalText([]byte(text)); err != nil {
			err = x.unusable("%s %w", name, err)
		}
	}
	read(x.Config["clip"], "clip", &c.Clip)
	read(x.Config["accumulate"], "accumulate", &c.Accumulate)
	read(x.Config["eval-share"], "eval-share", &c.EvalShare)
	read(x.Labels["lr"], "lr", &c.LR)
	read(unpowered(x.Labels[labelSteps]), labelSteps, &c.Steps)
	read(x.Labels[labelEpochs], labelEpochs, &c.Epochs)
	if text := x.Labels["warmup"]; text != "" {
		c.Warmup = new(whole)
		read(text, "warmup", c.Warmup)
	}
	return c, err
}

// resumption is the command line that continues an interrupted run, which was
// saved to a directory.
func resumption(e *env, dir string) string {
	words, args := []string{e.extras.name()}, e.args
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch {
		case !slices.Contains([]string{"--resume", "--save", "--init", "--rename"}, name):
			words = append(words, args[i])
		case !joined:
			i++ // its value
		}
	}
	return strings.Join(quoted(append(words, "--resume", dir)), " ")
}

// quoted quotes words for a shell where they need it.
func quoted(words []string) []string {
	out := slices.Clone(words)
	for i, w := range out {
		if w == "" || strings.ContainsAny(w, " \t\n\"'`$&|;<>()*?[]{}~#!\\") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return out
}
