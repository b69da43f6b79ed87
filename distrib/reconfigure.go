package distrib

import "fmt"

func (e *Engine) takeMove(from NodeID, h header, body []byte) error {
	return fmt.Errorf("a message of kind %d", h.kind)
}
