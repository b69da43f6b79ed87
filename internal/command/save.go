package command

import (
	"fmt"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/train"
)

// saveFlags say what a run begins with, and where and when it is saved.
type saveFlags struct {
	Save      location `group:"output" placeholder:"DIR"`
	SaveEvery count    `group:"output" placeholder:"N"`
	MTBF      mtbf     `name:"mtbf" group:"output" placeholder:"TIME"`
	Resume    location `group:"training" placeholder:"DIR"`
	Init      location `group:"training" placeholder:"DIR"`
	Rename    location `group:"training" placeholder:"FILE"`
}

// check refuses flags that contradict each other.
func (f saveFlags) check() error {
	switch {
	case f.SaveEvery > 0 && f.Save == "" && f.Resume == "":
		return usagef("--save-every needs --save DIR")
	case f.MTBF > 0 && f.Save == "" && f.Resume == "":
		return usagef("--mtbf needs --save DIR")
	case f.MTBF > 0 && f.SaveEvery > 0:
		return usagef("--mtbf and --save-every can't be used together: each says when to save")
	case f.Rename != "" && f.Init == "":
		return usagef("--rename needs --init DIR or FILE")
	case f.Init != "" && f.Resume != "":
		return usagef("--init and --resume can't be used together: what is resumed has weights")
	}
	return nil
}

// on refuses flags that a device has no use for.
func (f saveFlags) on(device string) error {
	switch {
	case gomem.Computes(device):
		return nil
	case f.Init != "":
		return usagef("--device %s computes nothing: it has no use for --init", device)
	case f.Save != "" || f.Resume != "":
		return usagef("--device %s computes nothing: it can neither save nor resume", device)
	}
	return nil
}

// reachable tries the paths before anything takes long; whoever saves can.
func (f saveFlags) reachable(saves bool) error {
	if f.Save != "" && saves {
		if err := train.CheckSave(string(f.Save), string(f.Resume)); err != nil {
			return err
		}
	}
	if f.Rename != "" {
		if _, err := train.ReadRenaming(string(f.Rename)); err != nil {
			return fmt.Errorf("--rename %w", err)
		}
	}
	return nil
}

// afterwards says how to continue an interrupted run.
func (f saveFlags) afterwards(s train.Summary, e *env) string {
	switch {
	case s.Checkpoint != "":
		return fmt.Sprintf("saved %s; continue with: %s", s.Checkpoint,
			resumption(e, string(f.Save)))
	case f.Save != "":
		return "there was nothing to save yet"
	}
	return "nothing was saved (--save DIR keeps a run)"
}
