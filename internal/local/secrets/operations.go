package secrets

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"
)

// request has the parameters of all operations.
type request struct {
	SecretID            string `json:"SecretId"`
	Name                string
	VersionID           string `json:"VersionId"`
	VersionStage        string
	ClientRequestToken  string
	SecretString        *string
	SecretBinary        []byte
	VersionStages       []string
	MoveToVersionID     string `json:"MoveToVersionId"`
	RemoveFromVersionID string `json:"RemoveFromVersionId"`
}

// valueResponse is a response about one version.
type valueResponse struct {
	ARN, Name     string
	VersionID     string   `json:"VersionId,omitempty"`
	SecretString  *string  `json:",omitempty"`
	SecretBinary  []byte   `json:",omitempty"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   float64  `json:",omitempty"`
}

// describeResponse is a response about a secret. Dates are seconds since 1970.
type describeResponse struct {
	ARN, Name          string
	CreatedDate        float64
	LastChangedDate    float64
	VersionIdsToStages map[string][]string `json:",omitempty"`
}

func (*Store) getSecretValue(secret *storedSecret, in request) (any, error) {
	v := secret.withStage(cmp.Or(in.VersionStage, stageCurrent))
	if in.VersionID != "" {
		v = secret.withID(in.VersionID)
	}
	if v == nil || in.VersionStage != "" && !slices.Contains(v.Stages, in.VersionStage) {
		return nil, errNoValue
	}
	response := secret.response(v)
	response.SecretString, response.SecretBinary, response.CreatedDate = v.Text, v.Binary, unixSeconds(v.Created)
	return response, nil
}

// response returns what all responses have about a version.
func (s *storedSecret) response(v *secretVersion) valueResponse {
	return valueResponse{ARN: s.ARN, Name: s.Name, VersionID: v.ID, VersionStages: v.Stages}
}

func (s *storedSecret) describe() describeResponse {
	d := describeResponse{
		ARN: s.ARN, Name: s.Name, CreatedDate: unixSeconds(s.Created), LastChangedDate: unixSeconds(s.Changed),
		VersionIdsToStages: map[string][]string{},
	}
	for _, v := range s.Versions {
		if len(v.Stages) > 0 {
			d.VersionIdsToStages[v.ID] = v.Stages
		}
	}
	return d
}

func (s *Store) listSecrets() any {
	list := []describeResponse{}
	for _, secret := range s.secrets {
		list = append(list, secret.describe())
	}
	return map[string]any{"SecretList": list}
}

func (s *Store) createSecret(in request) (any, error) {
	if in.Name == "" || (in.SecretString != nil && in.SecretBinary != nil) {
		return nil, errInvalidParameter
	}
	if s.findSecret(in.Name) != nil {
		return nil, errSecretExists
	}
	secret := s.addSecret(in.Name)
	response := valueResponse{ARN: secret.ARN, Name: secret.Name}
	if in.SecretString != nil || in.SecretBinary != nil {
		v := s.newVersion(in)
		s.addVersion(secret, v, []string{stageCurrent})
		response.VersionID = v.ID
	}
	return response, s.save()
}

// putSecretValue adds a value. The same request token with the same value changes nothing; another value is an error.
func (s *Store) putSecretValue(secret *storedSecret, in request) (any, error) {
	if (in.SecretString == nil) == (in.SecretBinary == nil) {
		return nil, errInvalidParameter
	}
	v := s.newVersion(in)
	if existing := secret.withID(v.ID); existing != nil {
		if !reflect.DeepEqual(existing.Text, v.Text) || !bytes.Equal(existing.Binary, v.Binary) {
			return nil, errVersionExists
		}
		return secret.response(existing), nil
	}
	stages := in.VersionStages
	if len(stages) == 0 || len(secret.Versions) == 0 && !slices.Contains(stages, stageCurrent) {
		stages = append(slices.Clone(stages), stageCurrent)
	}
	s.addVersion(secret, v, stages)
	return secret.response(v), s.save()
}

// updateSecretVersionStage moves, adds or removes a label. RemoveFromVersionId must name the version that loses it.
func (s *Store) updateSecretVersionStage(secret *storedSecret, in request) (any, error) {
	labelled := secret.withStage(in.VersionStage)
	to, removes := secret.withID(in.MoveToVersionID), in.MoveToVersionID == ""
	switch {
	case in.VersionStage == "", removes && in.VersionStage == stageCurrent:
		return nil, errInvalidParameter
	case removes && labelled == nil:
		return nil, errInvalidRequest
	case labelled != nil && labelled.ID != in.RemoveFromVersionID && labelled.ID != in.MoveToVersionID:
		return nil, errInvalidRequest
	case removes:
		labelled.removeStage(in.VersionStage)
	case to == nil:
		return nil, errNoVersion
	default:
		secret.moveStage(in.VersionStage, to)
	}
	secret.Changed = s.now().UTC()
	return valueResponse{ARN: secret.ARN, Name: secret.Name}, s.save()
}

// newVersion returns the version of a request. The request's token is the version's id.
func (s *Store) newVersion(in request) *secretVersion {
	return &secretVersion{ID: cmp.Or(in.ClientRequestToken, s.newID()), Text: in.SecretString, Binary: in.SecretBinary}
}

// unixSeconds returns a date in the protocol's form.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
