package null_test

import (
	"testing"

	"github.com/gomem/gomem/internal/device"
	"github.com/gomem/gomem/internal/device/devicetest"
	"github.com/gomem/gomem/internal/device/null"
)

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Device { return null.Open() },
		devicetest.Options{Any: true})
}
