package gomem

import "testing"

// TestNoDeviceIsNil: a device that does not open is nil, and not a nil pointer in
// an interface, which Close would be called on.
func TestNoDeviceIsNil(t *testing.T) {
	for _, o := range []Options{{Threads: -1}, {CopyBytesPerSecond: -1}} {
		if d, err := o.open(&Planned{}); err == nil || d != nil {
			t.Errorf("%+v opens %v, %v", o, d, err)
		}
	}
	d, err := Options{Threads: 1}.open(&Planned{})
	if err != nil || d == nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
