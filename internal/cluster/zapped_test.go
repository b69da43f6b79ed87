package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"go.uber.org/zap"
)

// TestZapped: entries of zap's are written by slog's handler, with all their fields, at and above
// its level.
func TestZapped(t *testing.T) {
	var out bytes.Buffer
	log := zapped(slog.New(slog.NewJSONHandler(&out, nil)).With("rank", 3))
	log.Debug("not written")
	log.Named("etcd").With(zap.String("of", "the node")).Warn("lost", zap.Int64("epoch", 7),
		zap.Ints("nodes", []int{1, 2}), zap.Error(errors.New("it is gone")))
	var have map[string]any
	if err := json.Unmarshal(out.Bytes(), &have); err != nil {
		t.Fatalf("%v: %q", err, out.String())
	}
	delete(have, "time")
	text, err := json.Marshal(have)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"epoch":7,"error":"it is gone","level":"WARN","logger":"etcd","msg":"lost",` +
		`"nodes":[1,2],"of":"the node","rank":3}`
	if string(text) != want {
		t.Errorf("have %s\nwant %s", text, want)
	}
	out.Reset()
	if log.DPanic("a fault"); !bytes.Contains(out.Bytes(), []byte(`"ERROR"`)) {
		t.Errorf("%q", out.String())
	}
}
