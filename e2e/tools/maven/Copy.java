package mobilegateway;

import java.io.File;
import java.nio.file.Files;
import java.util.Set;
import java.util.TreeSet;
import org.apache.maven.artifact.Artifact;
import org.apache.maven.execution.MavenSession;
import org.apache.maven.model.License;
import org.apache.maven.plugin.AbstractMojo;
import org.apache.maven.plugin.MojoExecutionException;
import org.apache.maven.project.DefaultProjectBuildingRequest;
import org.apache.maven.project.MavenProject;
import org.apache.maven.project.ProjectBuilder;
import org.apache.maven.project.ProjectBuildingRequest;

/**
 * Copies the jars of a pom.xml to output/lib, and writes output/licences.txt: name, version and licences of each jar,
 * separated by tabs. Maven resolves the jars before it starts this goal, so that it executes nothing of theirs.
 */
public class Copy extends AbstractMojo {
  private Set<Artifact> artifacts;
  private File output;
  private MavenSession session;
  private ProjectBuilder builder;

  @Override
  public void execute() throws MojoExecutionException {
    try {
      Files.createDirectories(output.toPath().resolve("lib"));
      Set<String> rows = new TreeSet<>();
      for (Artifact artifact : artifacts) {
        File jar = artifact.getFile();
        Files.copy(jar.toPath(), output.toPath().resolve("lib").resolve(jar.getName()));
        StringBuilder row = new StringBuilder(artifact.getGroupId() + ":" + artifact.getArtifactId());
        row.append('\t').append(artifact.getVersion());
        for (License licence : describe(artifact).getLicenses()) {
          row.append('\t').append(licence.getName());
        }
        rows.add(row.toString());
      }
      Files.write(output.toPath().resolve("licences.txt"), rows);
    } catch (Exception e) {
      throw new MojoExecutionException("copy the jars: " + e, e);
    }
  }

  /** Returns the description of a jar, with what it inherits. */
  private MavenProject describe(Artifact artifact) throws Exception {
    ProjectBuildingRequest request = new DefaultProjectBuildingRequest(session.getProjectBuildingRequest());
    request.setValidationLevel(org.apache.maven.model.building.ModelBuildingRequest.VALIDATION_LEVEL_MINIMAL);
    request.setProcessPlugins(false);
    return builder.build(artifact, true, request).getProject();
  }
}
