package secrets

import (
	"bytes"
	"cmp"
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

func (s *Store) getSecretValue(in request) (any, error) {
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	var v *secretVersion
	switch {
	case in.VersionID != "":
		v = secret.withID(in.VersionID)
		if v != nil && in.VersionStage != "" && !slices.Contains(v.Stages, in.VersionStage) {
			v = nil
		}
	case in.VersionStage != "":
		v = secret.withStage(in.VersionStage)
	default:
		v = secret.withStage(stageCurrent)
	}
	if v == nil {
		return nil, errNoValue
	}
	return valueResponse{
		ARN: secret.ARN, Name: secret.Name, VersionID: v.ID, SecretString: v.Text, SecretBinary: v.Binary,
		VersionStages: v.Stages, CreatedDate: unixSeconds(v.Created),
	}, nil
}

func (s *Store) describeSecret(in request) (any, error) {
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	return secret.describe(), nil
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

func (s *Store) listSecrets() (any, error) {
	list := struct{ SecretList []describeResponse }{SecretList: []describeResponse{}}
	for _, secret := range s.secrets {
		list.SecretList = append(list.SecretList, secret.describe())
	}
	return list, nil
}

func (s *Store) createSecret(in request) (any, error) {
	if in.Name == "" || (in.SecretString != nil && in.SecretBinary != nil) {
		return nil, errInvalidParameter
	}
	if s.findSecret(in.Name) != nil {
		return nil, errSecretExists
	}
	secret := s.addSecret(in.Name)
	if in.SecretString == nil && in.SecretBinary == nil {
		return valueResponse{ARN: secret.ARN, Name: secret.Name}, s.save()
	}
	v := s.newVersion(in)
	s.addVersion(secret, v, []string{stageCurrent})
	return valueResponse{ARN: secret.ARN, Name: secret.Name, VersionID: v.ID}, s.save()
}

// putSecretValue adds a value. The same request token with the same value changes nothing; another value is an error.
func (s *Store) putSecretValue(in request) (any, error) {
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	if (in.SecretString == nil) == (in.SecretBinary == nil) {
		return nil, errInvalidParameter
	}
	v := s.newVersion(in)
	if existing := secret.withID(v.ID); existing != nil {
		if !existing.sameValue(v) {
			return nil, errVersionExists
		}
		return valueResponse{
			ARN: secret.ARN, Name: secret.Name, VersionID: existing.ID, VersionStages: existing.Stages,
		}, nil
	}
	stages := in.VersionStages
	if len(stages) == 0 || len(secret.Versions) == 0 && !slices.Contains(stages, stageCurrent) {
		stages = append(slices.Clone(stages), stageCurrent)
	}
	s.addVersion(secret, v, stages)
	return valueResponse{ARN: secret.ARN, Name: secret.Name, VersionID: v.ID, VersionStages: v.Stages}, s.save()
}

// updateSecretVersionStage moves, adds or removes a label. RemoveFromVersionId must name the version that loses it.
func (s *Store) updateSecretVersionStage(in request) (any, error) {
	secret := s.findSecret(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	labelled := secret.withStage(in.VersionStage)
	if in.VersionStage == "" || (in.MoveToVersionID == "" && in.VersionStage == stageCurrent) {
		return nil, errInvalidParameter
	}
	if labelled != nil && labelled.ID != in.RemoveFromVersionID && labelled.ID != in.MoveToVersionID {
		return nil, errInvalidRequest
	}
	if in.MoveToVersionID == "" {
		if labelled == nil {
			return nil, errInvalidRequest
		}
		labelled.removeStage(in.VersionStage)
	} else {
		to := secret.withID(in.MoveToVersionID)
		if to == nil {
			return nil, errNoVersion
		}
		secret.moveStage(in.VersionStage, to)
	}
	secret.Changed = s.now().UTC()
	return valueResponse{ARN: secret.ARN, Name: secret.Name}, s.save()
}

// newVersion returns the version of a request. The request's token is the version's id.
func (s *Store) newVersion(in request) *secretVersion {
	return &secretVersion{ID: cmp.Or(in.ClientRequestToken, s.newID()), Text: in.SecretString, Binary: in.SecretBinary}
}

// sameValue reports whether two versions have the same value.
func (v *secretVersion) sameValue(other *secretVersion) bool {
	if v.Text != nil && other.Text != nil {
		return *v.Text == *other.Text
	}
	return v.Text == nil && other.Text == nil && bytes.Equal(v.Binary, other.Binary)
}

// unixSeconds returns a date in the protocol's form.
func unixSeconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
