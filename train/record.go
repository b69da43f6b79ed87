package train

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/gomem/gomem/internal/regular"
)

// recordName is the table of a run in the directory of Options.Metrics: a row a step, with what
// came of the evaluation after it, if there was one.
const recordName = "metrics.csv"

// The columns that every table begins with; those of metrics come behind them as they appear.
var recordColumns = []string{"step", "loss", "learning_rate", "units", "step_seconds", "seconds",
	"device_bytes", "host_bytes", heldOutColumn + "loss"}

// heldOutColumn is what columns of evaluations begin with.
const heldOutColumn = "held_out_"

// recording writes the numbers of a run to files as they come. A crash costs nothing: every row is
// written at once, and a run that is resumed drops those after the step that it goes on from.
type recording struct {
	dir     string
	numbers bool // losses and metrics are computed
	columns []string
	file    *os.File
	at      int64             // where the last row is in the file
	row     map[string]string // the last one, by column; nil before the first
	step    int               // of the last row, or the one that the run begins after
	seconds float64           // of all steps
	events  *eventFile
}

// errRecorded is of a directory that has the numbers of another run.
var errRecorded = errors.New("the directory has the metrics of another run: give another one, or " +
	"resume that run")

// checkRecord reports whether numbers could be written to a directory.
func (o Options) checkRecord() error {
	if o.Metrics == "" || !o.leads() {
		return nil
	}
	err := rehearse(osDisk{}, o.Metrics)
	if err == nil && o.Resume == "" {
		var rows []map[string]string
		_, rows, err = readRecord(filepath.Join(o.Metrics, recordName))
		if err == nil && len(rows) > 0 {
			err = errRecorded
		}
	}
	if err != nil {
		return optionf("metrics", "%s: %w", o.Metrics, bare(err))
	}
	return nil
}

// records are what a run writes of its numbers, as long as that goes well: a run is worth more than
// its curves.
type records struct{ to *recording } // nil: nothing is written

// begin begins to write to a directory, if it is wanted and has not begun: after what is there up
// to a step.
func (x *records) begin(dir string, numbers bool, done int) error {
	if dir == "" || x.to != nil {
		return nil
	}
	to := &recording{dir: dir, numbers: numbers}
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		err = to.rewind(done)
	}
	if err == nil {
		to.events, err = newEvents(dir, done+1)
	}
	if err != nil {
		return fmt.Errorf("metrics in %s: %w", dir, cmp.Or(bare(err), to.close()))
	}
	x.to = to
	return nil
}

// observe writes what happens. It returns why no more is written, "" if all is well.
func (x *records) observe(e Event) (warning string) {
	to := x.to
	if to == nil {
		return ""
	}
	err := to.observe(e)
	if err != nil || e.Kind == End {
		err = cmp.Or(err, to.close())
		x.to = nil
	}
	if err != nil {
		return fmt.Sprintf("metrics in %s: %v: no more of them are written", to.dir, bare(err))
	}
	return ""
}

// close ends the files of a run that did not come to its end.
func (x *records) close() {
	if x.to != nil {
		_ = x.to.close()
	}
}

// observe enters an event.
func (x *recording) observe(e Event) error {
	switch e.Kind {
	case Step:
		return x.trained(e)
	case Eval:
		return x.evaluated(e)
	}
	return nil
}

// trained enters a step.
func (x *recording) trained(e Event) error {
	if e.Step <= x.step { // workers have gone back
		if err := cmp.Or(x.rewind(e.Step-1), x.events.restart(e.Step)); err != nil {
			return err
		}
	}
	x.seconds += e.StepTime.Seconds()
	x.row = map[string]string{"step": strconv.Itoa(e.Step),
		"learning_rate": decimal(e.LearningRate), "units": strconv.Itoa(e.Units),
		"step_seconds": decimal(e.StepTime.Seconds()), "seconds": decimal(x.seconds),
		"device_bytes": strconv.FormatInt(e.DeviceBytes, 10),
		"host_bytes":   strconv.FormatInt(e.HostBytes, 10)}
	scalars := map[string]float64{"learning rate": e.LearningRate,
		"units a second": e.UnitsPerSecond, "step seconds": e.StepTime.Seconds(),
		"memory/device bytes": float64(e.DeviceBytes), "memory/host bytes": float64(e.HostBytes)}
	if x.numbers {
		x.enter("", "train/", e, scalars)
	}
	at, err := x.end()
	if err != nil {
		return err
	}
	x.step, x.at = e.Step, at
	return cmp.Or(x.write(), x.events.add(e.Step, scalars))
}

// evaluated enters an evaluation in the row of its step.
func (x *recording) evaluated(e Event) error {
	scalars := map[string]float64{}
	if x.row == nil || e.Step != x.step {
		return nil // before the first step
	}
	x.enter(heldOutColumn, "held-out/", e, scalars)
	return cmp.Or(x.write(), x.events.add(e.Step, scalars))
}

// enter enters a loss and metrics in the row, and as scalars.
func (x *recording) enter(column, tag string, e Event, scalars map[string]float64) {
	x.row[column+"loss"], scalars[tag+"loss"] = decimal(e.Loss), e.Loss
	for name, v := range e.Metrics {
		x.row[column+name], scalars[tag+name] = decimal(v), v
	}
}

// decimal is the shortest text of a number.
func decimal(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// end is where the file ends.
func (x *recording) end() (int64, error) {
	info, err := x.file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// write writes the last row, in place of what there was of it.
func (x *recording) write() error {
	fresh := slices.Sorted(maps.Keys(x.row))
	fresh = slices.DeleteFunc(fresh, func(c string) bool { return slices.Contains(x.columns, c) })
	if len(fresh) > 0 {
		return x.widen(fresh)
	}
	text, err := table(x.columns, false, x.row)
	if err == nil {
		_, err = x.file.WriteAt(text, x.at)
	}
	return err
}

// widen gives the table further columns, and the last row.
func (x *recording) widen(columns []string) error {
	_, rows, err := readRecord(x.file.Name())
	if err != nil {
		return err
	}
	step := x.row["step"]
	rows = slices.DeleteFunc(rows, func(row map[string]string) bool { return row["step"] == step })
	x.columns = append(x.columns, columns...)
	return x.replace(append(rows, x.row))
}

// rewind drops the rows after a step.
func (x *recording) rewind(step int) error {
	columns, rows, err := readRecord(filepath.Join(x.dir, recordName))
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(row map[string]string) bool {
		n, err := strconv.Atoi(row["step"])
		return err != nil || n > step
	})
	if err := regular.Tidy(osDisk{}, x.dir, recordName); err != nil {
		return err
	}
	x.columns, x.step, x.seconds = columns, step, 0
	if len(columns) == 0 {
		x.columns = slices.Clone(recordColumns)
	}
	if len(rows) > 0 {
		x.seconds, _ = strconv.ParseFloat(rows[len(rows)-1]["seconds"], 64) // 0 of none
	}
	return x.replace(rows)
}

// replace replaces the table in one step.
func (x *recording) replace(rows []map[string]string) error {
	text, err := table(x.columns, true, rows...)
	if err != nil {
		return err
	}
	err = regular.Replace(osDisk{}, x.dir, recordName, func(f file) error {
		_, err := f.Write(text)
		return err
	})
	if err != nil {
		return err
	}
	if x.file != nil {
		if err := x.file.Close(); err != nil {
			return err
		}
	}
	if x.file, err = os.OpenFile(filepath.Join(x.dir, recordName), os.O_RDWR, 0); err != nil {
		return err
	}
	x.row = nil
	if len(rows) > 0 && rows[len(rows)-1]["step"] == strconv.Itoa(x.step) {
		x.row = rows[len(rows)-1]
		last, err := table(x.columns, false, x.row)
		if err != nil {
			return err
		}
		x.at = int64(len(text) - len(last))
	}
	return nil
}

// sync brings all rows to the disk.
func (x *recording) sync() error {
	if x == nil {
		return nil
	}
	return cmp.Or(x.file.Sync(), x.events.file.Sync())
}

// close ends the files.
func (x *recording) close() error {
	var errs []error
	if x.file != nil {
		errs = append(errs, x.file.Close())
	}
	if x.events != nil {
		errs = append(errs, x.events.file.Close())
	}
	return errors.Join(errs...)
}

// table is rows as text, below the names of the columns if those are wanted.
func table(columns []string, head bool, rows ...map[string]string) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	if head {
		if err := w.Write(columns); err != nil {
			return nil, err
		}
	}
	for _, row := range rows {
		var cells []string
		for _, c := range columns {
			cells = append(cells, row[c])
		}
		if err := w.Write(cells); err != nil {
			return nil, err
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}

// readRecord reads a table, without a last row that is not whole; a file that is not there has
// none.
func readRecord(path string) (columns []string, rows []map[string]string, err error) {
	text, err := regular.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	cr := csv.NewReader(bytes.NewReader(text[:bytes.LastIndexByte(text, '\n')+1]))
	all, err := cr.ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("%s is no table of metrics: %w", recordName, err)
	}
	for i, cells := range all {
		if i == 0 {
			if columns = cells; columns[0] != recordColumns[0] {
				return nil, nil, fmt.Errorf("%s is no table of metrics: it begins with column "+
					"%.60q", recordName, columns[0])
			}
			continue
		}
		row := map[string]string{}
		for k, cell := range cells {
			row[columns[k]] = cell
		}
		rows = append(rows, row)
	}
	return columns, rows, nil
}
